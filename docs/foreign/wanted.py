"""A sentence for each case that a store may fail: what the contract wants."""

WANTED = {
    "C01": "Three verbs and one frozen manifest.",
    "C02": "`store` gives the item's id.",
    "C03": "What is retrieved has the same values and types as what was stored.",
    "C04": "An unknown id gives None.",
    "C05": "A foreign record is neither given out nor overwritten.",
    "C06": "What is not a JSON value is refused with its path, before any request.",
    "C07": "A hit has the same values and types as what was stored.",
    "C08": "A limit of N gives at most N; one that is negative or no int is refused.",
    "C09": "Without a condition: the newest first, then by id.",
    "C10": "A filter key that was not declared is refused by name.",
    "C11": (
        "A filter compares numbers by value and all else by type and value; times are inclusive bounds; all "
        "conditions hold before the limit."
    ),
    "C12": "Tags come back as they are; a search for tags finds what has any of them, whole and in this case.",
    "C13": "Metadata come back with the same values, types and order.",
    "C14": "What was stored is found at once, a replaced item as it is now.",
    "C15": "An outage is an error, and never an empty answer.",
    "C16": "A refused write is an error, and nothing is stored.",
    "C17": "A manifest that claims something else is noticed.",
    "X01": "A filter key that is declared later finds older items.",
    "X02": "A namespace that is indexed in another way is refused.",
    "X03": "A replaced item is not found by what it was.",
    "X04": "Nothing is shared between what is stored, what was given and what is handed out.",
    "X05": "A namespace shows nothing of another.",
    "X06": "A cancelled call leaves a whole item or none, and a store that works.",
    "X07": "A closed store says so.",
    "X08": "Of replaces at the same time one wins as a whole.",
    "X09": "Stores that begin at the same time lose nothing.",
    "X10": "Each extension that is claimed does what it says.",
    "X11": "A capability that goes away makes the store unavailable.",
    "X12": "A malformed record is an error with its cause.",
    "X14": "Every word of the text occurs in the content, in any order, each as a whole.",
}
