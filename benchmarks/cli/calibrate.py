HELP=""
EXAMPLES=""
def add_arguments(p): pass
def execute(a): pass
