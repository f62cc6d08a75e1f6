"""Defaults: the values that a call, an order or a form gets when nobody names them."""

from claims.build.programs import matches, says
from claims.build.spec import delete, investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

INVESTIGATIONS = (
    investigation(
        "lamp-level",
        template="call-a-tool",
        cause="default",
        prompt=talk(
            "Turn on the lamp in the hall.",
            'lamp(room="hall", level=5)',
            "Turn on the lamp in the attic.",
            'lamp(room="attic", level=5)',
            "Turn on the lamp in the kitchen.",
        ),
        behaviour="Does the response set level=5?",
        yes=matches(r"level ?= ?5\b", "contains level=5"),
        edits=(
            swap(
                "hall-3",
                'room="hall", level=5',
                'room="hall", level=3',
                "In the first call the level is 3 instead of 5.",
            ),
            swap(
                "attic-3",
                'room="attic", level=5',
                'room="attic", level=3',
                "In the second call the level is 3 instead of 5.",
            ),
            swap(
                "dim",
                "Turn on the lamp in the kitchen.",
                "Turn on the lamp in the kitchen at level 2.",
                "The last request names level 2.",
                kind="add",
            ),
            swap(
                "off",
                "Turn on the lamp in the kitchen",
                "Turn off the lamp in the kitchen",
                "The last request says off.",
            ),
            swap("cellar", "the kitchen", "the cellar", "The last request is for the cellar instead of the kitchen."),
            rewrite(
                "one",
                "delete",
                talk(
                    "Turn on the lamp in the attic.", 'lamp(room="attic", level=5)', "Turn on the lamp in the kitchen."
                ),
                "The exchange about the hall is removed.",
            ),
        ),
    ),
    investigation(
        "weather-unit",
        template="call-a-tool",
        cause="default",
        prompt=talk(
            "Weather in Madrid?",
            'weather(city="Madrid", unit="celsius")',
            "Weather in Lima?",
            'weather(city="Lima", unit="celsius")',
            "Weather in New York?",
        ),
        behaviour='Does the response set unit="celsius"?',
        yes=says("celsius"),
        edits=(
            swap(
                "lima-f",
                'city="Lima", unit="celsius"',
                'city="Lima", unit="kelvin"',
                "The second call asks for kelvin.",
            ),
            swap(
                "in-f",
                "Weather in New York?",
                "Weather in New York in fahrenheit?",
                "The last request names fahrenheit.",
                kind="add",
            ),
            swap("rome", "New York", "Rome", "The last request is for Rome instead of New York."),
            swap("time", "Weather in New York?", "Time in New York?", "The last request asks for the time."),
            swap(
                "madrid-f",
                'city="Madrid", unit="celsius"',
                'city="Madrid", unit="kelvin"',
                "The first call asks for kelvin.",
            ),
            rewrite("bare", "delete", "Weather in New York?", "Both earlier exchanges are removed."),
        ),
    ),
    investigation(
        "tea-sugar",
        template="order-at-counter",
        cause="default",
        prompt=talk("One tea with sugar.", "Tea, sugar: 1", "One tea.", "Tea, sugar: 0", "One coffee."),
        behaviour="Does the response note sugar: 0?",
        yes=matches(r"sugar: ?0", "contains sugar: 0"),
        edits=(
            swap(
                "with-sugar",
                "One coffee.",
                "One coffee with sugar.",
                "The last order is a coffee with sugar.",
                kind="add",
            ),
            swap("default-1", "Tea, sugar: 0", "Tea, sugar: 1", "The note of the second order is Tea, sugar: 1."),
            swap("cocoa", "One coffee.", "One cocoa.", "The last order is a cocoa instead of a coffee."),
            swap("milk", "One coffee.", "One coffee with milk.", "The last order is a coffee with milk.", kind="add"),
            rewrite(
                "no-plain",
                "delete",
                talk("One tea with sugar.", "Tea, sugar: 1", "One coffee."),
                "The second exchange is removed.",
            ),
            rewrite(
                "no-sugar", "delete", talk("One tea.", "Tea, sugar: 0", "One coffee."), "The first exchange is removed."
            ),
        ),
    ),
    investigation(
        "form-country",
        template="fill-the-form",
        cause="default",
        prompt="Default country: Peru. Default size: small. The customer named no country. Which country do we write?",
        behaviour="Does the response say Peru?",
        yes=says("Peru"),
        edits=(
            delete("no-default", "Default country: Peru. ", "The default country is removed."),
            delete("no-size", "Default size: small. ", "The default size is removed."),
            swap("chile", "Peru", "Chile", "The default country is Chile instead of Peru."),
            swap(
                "named",
                "named no country",
                "lives in Kenya",
                "The customer lives in Kenya; before, no country was named.",
            ),
            swap("ask-size", "Which country do we write", "Which size do we send", "The question asks for the size."),
            delete("no-customer", "The customer named no country. ", "The sentence about the customer is removed."),
        ),
    ),
    investigation(
        "code-default-argument",
        template="python-default",
        cause="default",
        prompt=talk(
            "def pay(amount=20): return amount\npay(7)",
            "7",
            "def pay(amount=30): return amount\npay(4)",
            "4",
            "def pay(amount=55): return amount\npay()",
        ),
        behaviour="Does the response give the number 55?",
        yes=says("55"),
        edits=(
            swap(
                "passed",
                "amount=55): return amount\npay()",
                "amount=55): return amount\npay(6)",
                "The last call passes 6.",
            ),
            swap("default-80", "amount=55", "amount=80", "The last function's default is 80 instead of 55."),
            rewrite(
                "bare", "delete", "def pay(amount=55): return amount\npay()", "Both earlier exchanges are removed."
            ),
            swap(
                "cost", "amount=30): return amount", "amount=90): return amount", "The second function's default is 90."
            ),
            swap(
                "one-empty",
                "return amount\npay(4)",
                "return amount\npay( 4 )",
                "Spaces stand around the 4 in the second call.",
                kind="add",
            ),
        ),
    ),
    investigation(
        "alarm-time",
        template="assumed-setting",
        cause="default",
        prompt=talk(
            "Set an alarm.", "Alarm set for 7 am.", "Set an alarm for noon.", "Alarm set for noon.", "Set an alarm."
        ),
        behaviour="Does the response set the alarm for 7?",
        yes=matches(r"\b7\b|\bseven\b", "contains 7 or seven"),
        edits=(
            swap("six", "7 am", "6 am", "The first alarm is set for 6 am instead of 7 am."),
            rewrite(
                "no-noon",
                "delete",
                talk("Set an alarm.", "Alarm set for 7 am.", "Set an alarm."),
                "The exchange about the alarm for noon is removed.",
            ),
            rewrite(
                "order",
                "reorder",
                talk(
                    "Set an alarm for noon.",
                    "Alarm set for noon.",
                    "Set an alarm.",
                    "Alarm set for 7 am.",
                    "Set an alarm.",
                ),
                "The two earlier exchanges change places.",
            ),
            rewrite(
                "evening",
                "add",
                talk(
                    "Set an alarm.",
                    "Alarm set for 7 am.",
                    "Set an alarm for noon.",
                    "Alarm set for noon.",
                    "Set an alarm for midnight.",
                ),
                "The last request names midnight.",
            ),
            rewrite(
                "please",
                "add",
                talk(
                    "Set an alarm.",
                    "Alarm set for 7 am.",
                    "Set an alarm for noon.",
                    "Alarm set for noon.",
                    "Please set an alarm.",
                ),
                "The last request begins with please.",
            ),
        ),
    ),
)
