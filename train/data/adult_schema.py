"""The attributes of UCI's Adult as its documentation lists them: public, whatever records a file holds."""

from __future__ import annotations

# What the documentation names as missing; here a value like any other.
UNKNOWN = "?"

# attribute -> categories in the order of adult.names, with UNKNOWN where the documentation says that values
# are missing.
CATEGORIES: dict[str, tuple[str, ...]] = {
    "workclass": (
        *"Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov".split(),
        *"Without-pay Never-worked".split(),
        UNKNOWN,
    ),
    "education": tuple(
        "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters "
        "1st-4th 10th Doctorate 5th-6th Preschool".split()
    ),
    "marital-status": tuple(
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
        "Married-AF-spouse".split()
    ),
    "occupation": (
        *"Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty".split(),
        *"Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving".split(),
        *"Priv-house-serv Protective-serv Armed-Forces".split(),
        UNKNOWN,
    ),
    "relationship": tuple("Wife Own-child Husband Not-in-family Other-relative Unmarried".split()),
    "race": tuple("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black".split()),
    "sex": tuple("Female Male".split()),
    "native-country": (
        *"United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc)".split(),
        *"India Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica".split(),
        *"Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti".split(),
        *"Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador".split(),
        *"Trinadad&Tobago Peru Hong Holand-Netherlands".split(),
        UNKNOWN,
    ),
}

# attribute -> the largest value allowed: two digits of years and of hours, five of dollars, which is how the
# census codes them.
NUMBERS: dict[str, int] = {"age": 100, "capital-gain": 99_999, "capital-loss": 99_999, "hours-per-week": 100}
# Amounts of money: log(1 + x) / log(1 + largest) instead of x / largest.
LOGARITHMIC = ("capital-gain", "capital-loss")

# The cells of one line, in order. Left out of a record: fnlwgt, the weight of the person in the survey and
# nothing about them; education-num, a function of education, which would give it away.
CELLS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
LEFT_OUT = ("fnlwgt", "education-num", "income")
LABELS = ("<=50K", ">50K")
