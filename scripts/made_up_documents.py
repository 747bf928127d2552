"""Makes up questions with blocks of documents that no public question set has: forms, options, changelogs, clauses, tables, mails.

`made_up(rng)` gives a question and its candidates: the block that answers it among other blocks of the same document and of
documents of the same kind. In every fourth case the answering line is taken out and nothing answers.
"""

# ruff: noqa: E501 — tables of phrases

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Value = Callable[[random.Random], str]


@dataclass(frozen=True)
class Block:
    text: str
    answers: bool = False
    answer: str = ""  # its words in the text


@dataclass(frozen=True)
class Case:
    question: str
    blocks: tuple[Block, ...]
    kind: str


NOUNS = (
    "Alder Birch Cedar Delta Ember Falcon Garnet Harbour Iris Juniper Kestrel Larch Meadow Nimbus Orchid Pioneer Quartz Raven "
    "Summit Thistle Umber Vale Willow Yarrow Zephyr North South East West Lower Upper Old New Marsh Stone Silver Copper Lantern"
).split()
PLACES = (
    "Station Works Bridge Depot Office Plant Centre School Farm Mill Line Unit Project Fund Clinic Library Hall Museum "
    "Terminal Reservoir Kiln Laboratory Shop Hotel"
).split()
FIRST = (
    "Anna Ben Carla David Elena Farid Grace Hugo Ines Jonas Keiko Liam Mara Nils Olga Priya Tom Sofia Wei Amara".split()
)
LAST = (
    "Ortega Lindqvist Mensah Okoro Petrova Haddad Tan Marsh Duarte Weber Mori Byrne Novak Berg Sidorova Nair Keller Rossi Chen Diallo"
).split()
MONTHS = "January February March April May June July August September October November December".split()
THINGS = (
    "invoices,visitor badges,meeting rooms,spare parts,water meters,delivery vans,safety shoes,company cars,laptops,lab samples,"
    "fire doors,bicycles,parking permits,protective gloves,backup tapes,contracts,complaints,chemicals,tools,access cards"
).split(",")


def person(rng: random.Random) -> str:
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def name(rng: random.Random) -> str:
    return f"{rng.choice(NOUNS)} {rng.choice(PLACES)}"


def company(rng: random.Random) -> str:
    return f"{rng.choice(NOUNS)} {rng.choice(['Ltd', 'Inc.', 'GmbH', 'Systems', 'Partners', '& Sons', 'SA', 'Group'])}"


def date(rng: random.Random) -> str:
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(2009, 2026)
    return rng.choice(
        [
            f"{day} {MONTHS[month - 1]} {year}", f"{MONTHS[month - 1]} {day}, {year}", f"{year}-{month:02}-{day:02}",
            f"{day:02}.{month:02}.{year}", f"{month}/{day}/{year}",
        ]
    )  # fmt: skip


def money(rng: random.Random) -> str:
    amount = rng.choice(
        [f"{rng.randint(2, 900)}.{rng.randint(0, 99):02}", f"{rng.randint(1, 990):,},{rng.randint(0, 999):03}"]
    )
    return rng.choice([f"€{amount}", f"${amount}", f"{amount} EUR", f"£{amount}", f"{amount} USD", amount])


def number(low: int, high: int, unit: str = "") -> Value:
    return lambda rng: f"{rng.randint(low, high)}{unit}"


def one(words: str) -> Value:
    return lambda rng: rng.choice(words.split(","))


def code(rng: random.Random) -> str:
    return rng.choice(
        [
            f"{rng.choice('ABCDKRTX')}{rng.choice('XYZQLM')}-{rng.randint(100, 9999)}", f"{rng.randint(10_000, 9_999_999)}",
            f"{rng.choice(['INV', 'PO', 'REF', 'TX', 'SN'])}-{rng.randint(2015, 2026)}-{rng.randint(1, 999):03}",
        ]
    )  # fmt: skip


def clock(rng: random.Random) -> str:
    return rng.choice(
        [
            f"{rng.randint(6, 21)}:{rng.choice(['00', '15', '30', '45'])}",
            f"{rng.randint(1, 11)} {rng.choice(['am', 'pm'])}",
        ]
    )


def hours(rng: random.Random) -> str:
    return f"{rng.randint(6, 10)}:00–{rng.randint(16, 22)}:{rng.choice(['00', '30'])}"


def email(rng: random.Random) -> str:
    return f"{rng.choice(FIRST).lower()}@{rng.choice(NOUNS).lower()}.example"


def phone(rng: random.Random) -> str:
    return f"+{rng.randint(1, 99)} {rng.randint(10, 999)} {rng.randint(100_000, 9_999_999)}"


def address(rng: random.Random) -> str:
    return f"{rng.randint(1, 240)} {rng.choice(NOUNS)} {rng.choice(['Street', 'Road', 'Lane', 'Avenue'])}"


def version(rng: random.Random) -> str:
    return f"{rng.randint(0, 9)}.{rng.randint(0, 20)}" + (f".{rng.randint(0, 12)}" if rng.random() < 0.6 else "")


YES_NO = one("yes,no,Yes,No,allowed,not allowed,permitted,prohibited")

# --- forms: labelled values ------------------------------------------------------------------------------------------
# A field: its labels, how it is asked for (a noun phrase, or a whole question that ends in "?"), and its value.

Field = tuple[str, str, Value]
FORMS: dict[str, tuple[Field, ...]] = {
    "Invoice": (
        ("Invoice number|Invoice No.|Invoice #", "invoice number|number of the invoice|which number does the invoice carry?", code),
        ("Invoice date|Date of issue|Issued", "invoice date|date of the bill|when was {s} billed?|when was the invoice issued?", date),
        ("Due date|Payable by|Payment due", "due date|payment deadline|when must it be paid?|by when do we have to pay {s}?", date),
        ("Total|Amount due|Grand total|Total due", "total|amount payable|how much do we owe {s}?|how much is to be paid?", money),
        ("VAT|Tax|Sales tax", "tax|VAT|how much tax is on the bill?", money),
        ("Subtotal|Net amount", "net amount|amount before tax|how much is it without tax?", money),
        ("Bill to|Customer", "customer|who is billed?|who has to pay the invoice of {s}?", company),
        ("Payment terms|Terms", "payment terms|how many days are there to pay?", number(7, 90, " days net")),
        ("IBAN|Account number", "bank account|account to pay into|which account should the money go to?", code),
        ("Purchase order|PO number", "purchase order|order number|to which order does it belong?", code),
    ),
    "Receipt": (
        ("Cashier|Served by", "cashier|who served the customer?|who was at the till?", person),
        ("Payment method|Paid by|Tender", "payment method|how was it paid?", one("Visa,cash,Mastercard,gift card,bank transfer")),
        ("Change|Change given", "change|how much change was given back?", money),
        ("Store|Branch", "store|branch|where was it bought?", name),
        ("Transaction|Receipt no.", "transaction number|receipt number", code),
        ("Discount|Member savings", "discount|how much was taken off?|how much did the customer save?", money),
        ("Returns until|Return by", "return deadline|until when can it be returned?|how long can I bring it back?", date),
        ("Points earned|Loyalty points", "loyalty points|how many points were earned?", number(1, 900)),
    ),
    "Contact": (
        ("Phone|Tel.|Telephone", "phone number|number to call|how can I call {s}?", phone),
        ("E-mail|Email|Mail", "e-mail address|where can I write to {s}?", email),
        ("Address|Street", "address|where is {s}?|where is {s} located?", address),
        ("Opening hours|Open|Hours", "opening hours|when is {s} open?|when can I visit {s}?", hours),
        ("Contact person|Contact", "contact person|who is responsible for {s}?|whom do I ask at {s}?", person),
        ("Closed on|Closing day", "closing day|on which day is {s} closed?", one("Monday,Tuesday,Sunday,public holidays")),
        ("Website|Homepage", "website|home page", lambda rng: f"www.{rng.choice(NOUNS).lower()}.example"),
        ("Director|Head|Manager", "director|head|who runs {s}?|who leads {s}?|boss", person),
        ("Emergency number|On call", "emergency number|whom do I call at night?", phone),
    ),
    "Configuration": (
        ("timeout|request_timeout|read_timeout", "timeout|after how many seconds does {s} give up?", number(1, 600)),
        ("port|listen_port|server.port", "port|on which port does {s} listen?", number(1024, 65000)),
        ("log_level|loglevel|logging.level", "log level|how much does {s} log?", one("debug,info,warning,error")),
        ("max_connections|pool_size|workers", "maximum of connections|how many connections can {s} hold?", number(2, 512)),
        ("data_dir|storage_path|datadir", "data folder|where does {s} keep its data?", lambda rng: f"/var/lib/{rng.choice(NOUNS).lower()}"),
        ("retries|max_retries", "number of retries|how often does {s} try again?", number(1, 12)),
        ("cache_size|cache_mb", "cache size|how large is the cache?", number(16, 4096, " MB")),
        ("tls|use_ssl|encryption", "encryption|is the connection of {s} encrypted?", one("true,false,on,off")),
        ("user|run_as|username", "user|under which account does {s} run?", lambda rng: rng.choice(NOUNS).lower()),
        ("backup_schedule|backup_at", "time of the backup|when are backups made?", clock),
    ),
    "Data sheet": (
        ("Weight|Mass|Net weight", "weight|how heavy is {s}?|how much does {s} weigh?", number(1, 900, " kg")),
        ("Length", "length|how long is {s}?", number(10, 900, " cm")),
        ("Height", "height|how tall is {s}?|how high is {s}?", number(10, 900, " cm")),
        ("Power|Rated power", "power|how many watts does {s} have?", number(1, 900, " W")),
        ("Operating temperature|Temperature range", "operating temperature|how warm may {s} get?", lambda rng: f"-{rng.randint(1, 40)} to {rng.randint(30, 90)} °C"),
        ("Capacity|Volume", "capacity|volume|how much fits into {s}?", number(1, 900, " litres")),
        ("Manufacturer|Maker|Made by", "manufacturer|who makes {s}?|who built {s}?", company),
        ("Warranty|Guarantee", "warranty|how long is {s} under guarantee?", number(1, 10, " years")),
        ("Material|Housing", "material|what is {s} made of?", one("steel,aluminium,oak,glass,polycarbonate,brass")),
        ("Colour|Color", "colour|which colour is {s}?", one("red,black,anthracite,white,light grey")),
        ("Battery life|Battery", "battery life|how long does the battery of {s} last?", number(2, 72, " hours")),
        ("Serial number|S/N", "serial number", code),
    ),
    "Profile": (
        ("Founded|Established|Formed", "year of foundation|when was {s} founded?|how old is {s}?", number(1820, 2023)),
        ("Founder|Founders|Founded by", "founder|who founded {s}?|who started {s}?", person),
        ("Headquarters|Seat|Head office", "headquarters|where is the head office of {s}?|where is {s} based?", name),
        ("Employees|Staff|Number of employees", "number of employees|how many people work at {s}?|staff", number(3, 90_000)),
        ("Revenue|Turnover", "revenue|turnover|how much did {s} sell?", money),
        ("Industry|Sector|Field", "industry|what business is {s} in?", one("chemicals,shipping,software,food,insurance,paper")),
        ("CEO|Chief executive|Managing director", "chief executive|CEO|who is the head of {s}?|who leads {s}?", person),
        ("Owner|Parent|Parent company", "owner|who owns {s}?|to whom does {s} belong?", company),
        ("Area|Surface", "area|how large is {s}?", number(2, 900, " km2")),
        ("Population|Inhabitants", "population|how many people live in {s}?", number(200, 90_000)),
        ("Architect|Designed by", "architect|who designed {s}?", person),
        ("Kingdom|Order|Family", "{l}|which {l} does {s} belong to?", one("Anatidae,Rosaceae,Felidae,Pinaceae,Salmonidae")),
    ),
    "House rules": (
        ("Smoking allowed on the terrace|Smoking on the terrace", "may I smoke on the terrace?|is smoking allowed on the terrace?|smoking terrace", YES_NO),
        ("Smoking in the rooms|Smoking allowed in rooms", "can guests smoke in the rooms?|is smoking in the room permitted?", YES_NO),
        ("Dogs|Dogs allowed|Pets", "can I bring my dog?|are pets allowed?|are dogs permitted?", YES_NO),
        ("Check-in|Check-in from|Arrival", "check-in time|from when can we check in?|when may guests arrive?", clock),
        ("Check-out|Check-out until|Departure", "check-out time|by when must we leave the room?|until when is check-out?", clock),
        ("Quiet hours|Night rest", "quiet hours|when must it be quiet?", hours),
        ("Parking|Parking fee", "parking fee|what does parking cost?|how much is a parking space?", money),
        ("Breakfast|Breakfast served", "breakfast time|when is breakfast?", hours),
        ("Wi-Fi password|WLAN password", "wifi password|how do I get into the wireless network?", code),
        ("Deposit|Security deposit", "deposit|how much must be deposited?", money),
        ("Children under 12|Children", "are children allowed?|may we bring kids?", YES_NO),
    ),
    "Order": (
        ("Delivery date|Delivery|Expected delivery", "delivery date|when will {s} be delivered?|when does it arrive?", date),
        ("Carrier|Shipped with|Forwarder", "carrier|who delivers {s}?|who transports the goods?", company),
        ("Quantity|Pieces|Qty", "quantity|how many pieces were ordered?|how many items?", number(1, 9000)),
        ("Unit price|Price per piece", "unit price|what does one piece cost?", money),
        ("Order status|Status", "status|is {s} already shipped?|how far is the order?", one("shipped,open,cancelled,in preparation,delivered")),
        ("Tracking number|Shipment number", "tracking number|how can I follow the parcel?", code),
        ("Supplier|Vendor|Seller", "supplier|who sells it?|vendor", company),
        ("Ordered by|Requested by", "who ordered {s}?|who asked for it?", person),
        ("Cost centre|Cost center", "cost centre|who bears the costs?", code),
    ),
    "Policy": (
        ("Retention period|Kept for", "retention period|how long are the records of {s} kept?", number(1, 30, " years")),
        ("Responsible|Owner of the process", "who is responsible?|who owns the process?", person),
        ("Valid from|Effective date|In force since", "effective date|since when does it apply?|when does it come into force?", date),
        ("Next review|Review date", "review date|when will it be reviewed?", date),
        ("Classification|Confidentiality", "classification|how confidential is it?|is it secret?", one("public,internal,confidential,strictly confidential")),
        ("Notice period|Period of notice", "notice period|how long before must one give notice?", number(1, 12, " weeks")),
        ("Holiday entitlement|Annual leave", "annual leave|how many days off do employees get?|vacation days", number(20, 36, " days")),
        ("Approval limit|Approved up to", "approval limit|up to which amount may a manager approve?", money),
        ("Deductible|Excess", "deductible|how much do I pay myself?", money),
        ("Coverage|Sum insured", "sum insured|up to which amount is {s} covered?", money),
    ),
    "Software": (
        ("License|Licence", "licence|under which licence is {s}?|how is {s} licensed?", one("MIT,Apache-2.0,GPL-3.0,BSD-3-Clause,MPL-2.0")),
        ("Version|Current version|Latest release", "version|which version of {s} is current?|newest release", version),
        ("Requires|Requirements|Depends", "requirements|what does {s} need to run?|dependencies", one("Python 3.11,Java 17,libc 2.31,Node 20,PostgreSQL 15")),
        ("Maintainer|Author", "maintainer|author|who wrote {s}?|who maintains {s}?", person),
        ("Written in|Language|Programming language", "programming language|what is {s} written in?", one("Rust,Go,C++,Python,Haskell")),
        ("Size|Installed size", "size|how much disk space does {s} take?", number(1, 900, " MB")),
        ("Homepage|Repository", "home page|where is the source of {s}?", lambda rng: f"https://{rng.choice(NOUNS).lower()}.example/src"),
        ("Supported until|End of life|EOL", "end of support|until when is {s} supported?|end of life", date),
        ("Platforms|Operating systems", "platforms|does {s} run on Windows?|on which systems does {s} run?", one("Linux; macOS,Windows; Linux,Linux only,Android")),
    ),
}  # fmt: skip
FRAMES = (
    "What is the {n} of {s}?", "what is the {n}?", "{s} {n}", "{n} of {s}", "{n} {s}?", "Which {n} does {s} have?", "Tell me the {n} of {s}.",
    "What {n} is given for {s}?", "What's the {n} for {s}?", "{n}?",
)  # fmt: skip
OTHER_FORMS: dict[str, tuple[tuple[str, ...], tuple[Field, ...]]] = {
    "Rechnung|Datenblatt|Steckbrief": (
        ("Wie lautet {n} von {s}?", "{s} {n}", "{n} von {s}", "Was ist {n} bei {s}?", "{n}?"),
        (
            ("Rechnungsnummer", "Rechnungsnummer|welche Nummer hat die Rechnung?", code),
            ("Rechnungsdatum", "Rechnungsdatum|wann wurde die Rechnung gestellt?", date),
            ("Gesamtbetrag|Summe", "Gesamtbetrag|wie viel ist zu zahlen?|wie hoch ist die Summe?", money),
            ("Zahlbar bis|Fällig am", "Zahlungsfrist|bis wann muss bezahlt werden?", date),
            ("Ansprechpartner|Kontakt", "Ansprechpartner|wer ist für {s} zuständig?", person),
            ("Öffnungszeiten|Geöffnet", "Öffnungszeiten|wann hat {s} geöffnet?", hours),
            ("Gewicht", "Gewicht|wie schwer ist {s}?", number(1, 900, " kg")),
            ("Gründung|Gegründet", "Gründungsjahr|wann wurde {s} gegründet?", number(1820, 2023)),
            ("Mitarbeiter|Beschäftigte", "Mitarbeiter|wie viele Menschen arbeiten bei {s}?", number(3, 9000)),
            ("Kündigungsfrist", "Kündigungsfrist|wie lange vorher muss man kündigen?", number(1, 12, " Wochen")),
            ("Hunde erlaubt|Haustiere", "sind Hunde erlaubt?|darf ich meinen Hund mitbringen?", one("ja,nein")),
        ),
    ),
    "Facture|Fiche|Contrat": (
        ("Quel est {n} de {s} ?", "{s} {n}", "{n} de {s}", "{n} ?"),
        (
            ("Numéro de facture|Facture n°", "numéro de facture|quel est le numéro de la facture ?", code),
            ("Date de facture", "date de facture|quand la facture a-t-elle été émise ?", date),
            ("Montant total|Total", "montant total|combien faut-il payer ?", money),
            ("Échéance|Date limite", "échéance|quand faut-il payer ?", date),
            ("Responsable|Contact", "responsable|qui est responsable de {s} ?", person),
            ("Horaires|Heures d'ouverture", "horaires|quand {s} est-il ouvert ?", hours),
            ("Poids", "poids|combien pèse {s} ?", number(1, 900, " kg")),
            ("Fondation|Créée en", "année de fondation|quand {s} a-t-elle été fondée ?", number(1820, 2023)),
            ("Durée du préavis|Préavis", "préavis|quelle est la durée du préavis ?", number(1, 12, " semaines")),
            ("Animaux acceptés|Chiens", "les chiens sont-ils acceptés ?", one("oui,non")),
        ),
    ),
    "Factura|Ficha|Contrato": (
        ("¿Cuál es {n} de {s}?", "{s} {n}", "{n} de {s}", "¿{n}?"),
        (
            ("Número de factura", "número de factura|¿qué número tiene la factura?", code),
            ("Fecha de emisión|Fecha", "fecha|¿cuándo se emitió la factura?", date),
            ("Importe total|Total", "importe total|¿cuánto hay que pagar?", money),
            ("Vencimiento", "vencimiento|¿hasta cuándo hay que pagar?", date),
            ("Responsable|Contacto", "responsable|¿quién es responsable de {s}?", person),
            ("Horario", "horario|¿cuándo abre {s}?", hours),
            ("Peso", "peso|¿cuánto pesa {s}?", number(1, 900, " kg")),
            ("Fundación|Año de fundación", "año de fundación|¿cuándo se fundó {s}?", number(1820, 2023)),
            ("Empleados|Plantilla", "empleados|¿cuántas personas trabajan en {s}?", number(3, 9000)),
            ("Mascotas|Se admiten perros", "¿se admiten perros?", one("sí,no")),
        ),
    ),
}
SECTIONS = "Details,Overview,General,Summary,Part A,Section 2,Notes,Annex,Data,Page 1,Information,Record".split(",")


def pairs_as_text(pairs: Sequence[tuple[str, str]], style: int) -> str:
    joined = {
        0: ("{}: {}", "\n"), 1: ("{} = {}", "\n"), 2: ("{}\t{}", "\n"), 3: ("| {} | {} |", "\n"), 4: ("{}: {}.", " "),
        5: ("- {}: {}", "\n"), 6: ("{}: {}", "; "), 7: ("{} {}", "\n"), 8: ('"{}": "{}"', ",\n"), 9: ("**{}**: {}", "\n"),
    }  # fmt: skip
    form, between = joined[style]
    return between.join(form.format(*pair) for pair in pairs)


def under(path: Sequence[str], text: str) -> str:
    return f"{' › '.join(part for part in path if part)}: {text}" if any(path) else text


def parts(lines: list, rng: random.Random, sizes: tuple[int, int]) -> list[list]:
    """The lines in runs of random length."""
    found, at = [], 0
    while at < len(lines):
        size = rng.randint(*sizes)
        found.append(lines[at : at + size])
        at += size
    return found


def form_case(rng: random.Random) -> Case:
    if rng.random() < 0.8:
        kind = rng.choice(list(FORMS))
        frames, fields, of = FRAMES, FORMS[kind], "form"
    else:
        kinds = rng.choice(list(OTHER_FORMS))
        (frames, fields), kind, of = OTHER_FORMS[kinds], rng.choice(kinds.split("|")), "form/other"
    used = rng.sample(fields, rng.randint(min(5, len(fields)), len(fields)))
    labels = {id(field): rng.choice(field[0].split("|")) for field in used}
    asked = rng.choice(used)
    names = list({rng.choice([name, company, name, person if kind == "Contact" else name])(rng) for _ in range(9)})[
        : rng.randint(1, 5)
    ]
    style, titled, size = rng.randrange(10), rng.random(), rng.choice([(1, 3), (3, 6), (4, 12)])
    if rng.random() < 0.3:
        labels = {key: label.lower() for key, label in labels.items()}
    answerable = rng.random() < 0.75
    found: list[Block] = []
    for place, subject in enumerate(names):
        rows = [(field, labels[id(field)], field[2](rng)) for field in used]
        if place == 0 and not answerable:
            rows = [row for row in rows if row[0] is not asked]
        section = rng.choice(SECTIONS)
        named_inside = titled >= 0.6 or len(names) == 1
        for run in parts(rows, rng, size):
            text = pairs_as_text([(label, value) for _, label, value in run], style)
            path = (
                (kind, subject, section)
                if rng.random() < 0.5
                else (f"{kind} {subject}",)
                if rng.random() < 0.5
                else (subject,)
            )
            if titled < 0.6:
                text = under(path, text)
            elif named_inside:
                text = f"{rng.choice([kind, 'Name', 'For'])}: {subject}\n{text}"
            hit = [value for field, _, value in run if field is asked and place == 0]
            found.append(Block(text, bool(hit), hit[0] if hit else ""))
    subject = names[0]
    way = rng.choice(asked[1].split("|")).replace("{l}", labels[id(asked)].lower())
    question = way if way.endswith("?") else rng.choice(frames).replace("{n}", way)
    if "{s}" not in question and len(names) > 1:  # several records: only the name says which
        bare = question.rstrip("? .")
        question = rng.choice([f"{subject}: {bare}?", f"{bare} ({subject})", f"{bare} {subject}"])
    return Case(question.replace("{s}", subject if rng.random() < 0.8 else subject.lower()), tuple(found), of)


# --- options of programs ---------------------------------------------------------------------------------------------

VERBS = {
    "print": "show|display|output|write out|list", "ignore": "skip|leave out|not look at|exclude", "limit": "restrict|cap|set a maximum for",
    "delete": "remove|erase|get rid of|clean up", "follow": "go along|resolve", "keep": "preserve|retain|not lose", "sort by": "order by|arrange by",
    "compress": "zip|shrink|pack", "encrypt": "protect|make unreadable", "read": "load|take|get", "use": "work with|choose|select",
    "enable": "turn on|activate|switch on", "disable": "turn off|deactivate|switch off", "overwrite": "replace|write over",
    "check": "verify|test|validate", "wait for": "pause for|delay until", "rename": "change the name of|call differently",
    "count": "tell the number of|number", "copy": "duplicate|transfer", "convert": "turn into another form|transform", "merge": "join|combine",
}  # fmt: skip
OBJECTS = (
    "hidden files,symbolic links,file permissions,the log file,the number of retries,network requests,time stamps,empty lines,"
    "duplicate entries,line endings,the configuration file,the cache,temporary files,error messages,colours,the output width,"
    "directory names,checksums,certificates,environment variables,the header row,white space,binary files,the index,old backups,"
    "passwords,page numbers,images,the memory usage,threads,parallel jobs,sockets,the proxy,cookies,signatures,submodules,tags,"
    "remote branches,comments,warnings,the progress bar,user accounts,disk usage,the table of contents,fonts,margins"
).split(",")
TAILS = (
    "", "", " This is the default.", " Not available on all systems.", " May be given several times.", " Implies the option before.",
    " The default is {d}.", " Requires root.", " Deprecated since version {v}.", " Has no effect together with --quiet.",
    " The value must be between 1 and {d}.",
)  # fmt: skip
ASK_OPTION = (
    "How do I {v} {o}?", "which option {v}s {o}", "how can I {v} {o}", "{v} {o}", "What is the flag to {v} {o}?", "option to {v} {o}",
    "Is there a switch that lets me {v} {o}?", "I want to {v} {o}", "how to {v} {o}?",
)  # fmt: skip


def option_case(rng: random.Random) -> Case:
    tool = rng.choice(NOUNS).lower() + rng.choice(["", "ctl", "-tool", "d", "sync"])
    chosen = rng.sample(OBJECTS, rng.randint(5, 16))
    style = rng.randrange(4)
    entries = []
    flags: set[str] = set()
    for thing in chosen:
        verb = rng.choice(list(VERBS))
        word = rng.choice(
            [thing.split()[-1], f"{verb.split()[0]}-{thing.split()[-1]}", f"no-{thing.split()[-1]}", verb.split()[0]]
        )
        long = f"--{word}"
        if long in flags:
            continue
        flags.add(long)
        short = f"-{rng.choice('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ')}"
        argument = rng.choice(["", "", "=NUM", " FILE", "=WHEN"])
        flag = rng.choice(
            [f"{short}, {long}{argument}", f"{long}{argument}", short, f"{short} {argument.strip(' =') or 'arg'}"]
        )
        default = rng.choice([str(rng.randint(2, 900)), f"{rng.randint(1, 60)} seconds", "auto", "never"])
        tail = rng.choice(TAILS).format(d=default, v=version(rng))
        text = f"{verb.capitalize()} {thing}{rng.choice(['', ' of every file', ' before anything else is done', ' found on the way', ' given as argument'])}.{tail}"
        line = (f"{flag}   {text}", f"{flag}\n    {text}", f"`{flag}`: {text}", f"| {flag} | {text} |")[style]
        entries.append((flag, verb, thing, default if "default is" in tail else "", line))
    flag, verb, thing, default, line = entries[0]
    kind = rng.random()
    said = verb if rng.random() < 0.3 else rng.choice(VERBS[verb].split("|"))
    if kind < 0.6:
        question, answer = rng.choice(ASK_OPTION).format(v=said, o=thing), flag
        if rng.random() < 0.3:
            question = f"{tool}: {question}"
    elif kind < 0.8 or not default:
        bare = flag.split(",")[-1].strip()
        question = rng.choice(
            ["What does {f} do?", "meaning of {f}", "{t} {f}", "What is {f} for?", "explain {f}"]
        ).format(f=bare, t=tool)
        answer = ""
    else:
        bare = flag.split(",")[-1].strip()
        question = rng.choice(["What is the default of {f}?", "{f} default value", "default for {f}?"]).format(f=bare)
        answer = default
    order = entries[1:]
    rng.shuffle(order)
    if rng.random() < 0.75:
        order.insert(rng.randint(0, len(order)), entries[0])
    path = rng.choice([(f"{tool}(1)", "OPTIONS"), (tool, "Options"), (f"{tool} manual", "Command line", "Flags"), ()])
    found = []
    for run in parts(order, rng, rng.choice([(1, 1), (1, 3), (3, 8)])):
        hit = any(each[4] == line for each in run)
        found.append(Block(under(path, "\n".join(each[4] for each in run)), hit, answer if hit else ""))
    others = rng.sample(OBJECTS, 3)
    found.append(
        Block(
            under(
                (f"{tool}(1)", "DESCRIPTION"),
                f"{tool} works on {others[0]} and {others[1]}. It reads {others[2]} first. See the options below.",
            )
        )
    )
    return Case(question, tuple(found), "options")


# --- changelogs ------------------------------------------------------------------------------------------------------

CHANGES = {
    "Added": (
        "Added support for {o}",
        "{O} can now be exported",
        "New setting for {o}",
        "Introduced {o} in the sidebar",
    ),
    "Fixed": (
        "Fixed a crash when {o} are missing",
        "{O} no longer disappear after a restart",
        "Corrected the handling of {o}",
    ),
    "Removed": ("Removed {o}", "Dropped support for {o}", "{O} are gone"),
    "Deprecated": ("Deprecated {o}; use the new interface", "{O} will go away in the next major release"),
    "Changed": ("{O} are now twice as fast", "Renamed the option for {o}", "{O} are stored in another folder"),
}
ASK_CHANGE = {
    "Added": (
        "In which version was support for {o} added?",
        "since when are there {o}",
        "Which release introduced {o}?",
        "when did {o} arrive",
    ),
    "Fixed": ("When was the problem with {o} fixed?", "in which release was the bug with {o} repaired", "fix for {o}"),
    "Removed": ("Which version removed {o}?", "are {o} still supported?", "when were {o} dropped"),
    "Deprecated": ("Since when are {o} deprecated?", "should I still use {o}?", "{o} deprecated version"),
    "Changed": ("When did {o} change?", "in which version did {o} change", "what changed about {o}?"),
}


def change_case(rng: random.Random) -> Case:
    product, objects = rng.choice(NOUNS), rng.sample(OBJECTS, 14)
    versions = sorted({version(rng) for _ in range(rng.randint(3, 7))}, reverse=True)
    groups: list[tuple[str, str, list]] = []
    at = 0
    for each in versions:
        items = []
        for _ in range(rng.randint(1, 4)):
            if at < len(objects):
                kind = rng.choice(list(CHANGES))
                items.append(
                    (kind, objects[at], rng.choice(CHANGES[kind]).format(o=objects[at], O=objects[at].capitalize()))
                )
                at += 1
        if items:
            groups.append((each, date(rng), items))
    release, day, items = rng.choice(groups)
    asked = rng.choice(items)
    form = rng.random()
    if form < 0.65:
        question = rng.choice(ASK_CHANGE[asked[0]]).format(o=asked[1])
        answer = "" if "still" in question or "what changed" in question else release
    elif form < 0.85:
        question = rng.choice(
            ["What changed in {v}?", "what is new in {p} {v}", "release notes {v}", "What's new in version {v}?"]
        ).format(v=release, p=product)
        asked, answer = None, ""
    else:
        question, asked = (
            rng.choice(["When was {p} {v} released?", "release date of {v}", "{p} {v} date"]).format(
                v=release, p=product
            ),
            None,
        )
        answer = day
    answerable, inside = rng.random() < 0.75, rng.random() < 0.4
    mark, found = rng.choice(["- ", "* ", "• ", ""]), []
    for each, when, lines in groups:
        lines = [line for line in lines if answerable or each != release or line is not asked]
        if (not answerable and asked is None and each == release) or not lines:
            continue
        for run in parts(lines, rng, rng.choice([(1, 1), (4, 4), (2, 4)])):
            head = f"{each} ({when})"
            text = "\n".join(f"{mark}{line}" for _, _, line in run)
            text = (
                f"{head}\n{text}"
                if inside
                else under((rng.choice(["Changelog", "Release notes", f"{product} history"]), head), text)
            )
            hit = each == release and (asked is None or any(line is asked for line in run))
            found.append(Block(text, hit, answer if hit else ""))
    return Case(question, tuple(found), "changes")


# --- clauses, rules, minutes: sentences with a fact ------------------------------------------------------------------
# Heading, sentence with slots, questions. The answer is the slot {a}; without it the whole sentence answers.

FACTS: tuple[tuple[str, str, str, Value | None], ...] = (
    ("Termination", "Either party may end this agreement with {a} written notice.", "How long is the notice period?|notice for ending the contract|how far ahead must one cancel?", number(2, 90, " days'")),
    ("Liability", "The liability of the supplier is limited to {a} for each event.", "What is the maximum liability?|how much does the supplier pay at most?|liability cap", money),
    ("Payment", "Invoices are paid within {a} of receipt.", "When must invoices be paid?|how fast do we pay bills?|payment term", number(7, 90, " days")),
    ("Governing law", "This agreement is governed by the laws of {a}.", "Which law applies?|under whose law is the contract?|applicable law", one("Sweden,Ireland,the State of New York,Switzerland,Ontario")),
    ("Redistribution", "You may give copies of the software to others as long as this notice stays in every copy.", "May I pass the software on?|am I allowed to redistribute copies?|what must stay in copies?", None),
    ("Warranty", "The software comes as it is, without any warranty.", "Is there a warranty?|who is liable if the software breaks something?|does the licence give a guarantee?", None),
    ("Trademarks", "This licence gives no right to use the names or marks of the authors.", "Can I use the name of the authors?|does the licence include trade marks?", None),
    ("Patents", "Each contributor grants a free patent licence, which ends if you sue over patents.", "Does the licence cover patents?|what happens to patent rights if I sue?", None),
    ("Modified versions", "Modified versions must be marked with {a}.", "How must changed versions be marked?|what do I need to add to a changed file?", one("the date of the change,a prominent notice,another name")),
    ("Confidentiality", "Both parties keep secret what they learn for {a} after the end of the contract.", "How long does confidentiality last?|for how long must secrets be kept?", number(1, 10, " years")),
    ("Subcontractors", "Work may be given to subcontractors only with written consent of the customer.", "May the supplier use subcontractors?|can work be handed to other firms?", None),
    ("Visitors", "Visitors report to {a} and wear a badge at all times.", "Where do guests have to sign in?|where must visitors report?", one("the front desk,gate 3,the porter,the security office")),
    ("Alarm", "When the alarm sounds, leave the building by the nearest stairs and gather at {a}.", "Where do we meet when there is a fire?|assembly point|where to go in an alarm?", one("the car park,the bicycle shed,the north gate,the fountain")),
    ("Expenses", "Travel costs are refunded up to {a} a day.", "How much can I spend per day on a trip?|travel allowance|maximum daily expenses", money),
    ("Remote work", "Employees may work from home {a} a week.", "How often may I work from home?|home office days", number(1, 4, " days")),
    ("Passwords", "Passwords have at least {a} and are changed once a year.", "How long must a password be?|minimum password length", number(8, 20, " characters")),
    ("Backups", "Backups are made every night and kept for {a}.", "How long do we keep backups?|retention of backups", number(7, 400, " days")),
    ("Returns", "Goods can be sent back within {a} if they are unused.", "How long can I return something?|return window|can I send goods back?", number(7, 100, " days")),
    ("Shipping", "Orders above {a} are sent free of charge.", "From which amount is delivery free?|free shipping limit", money),
    ("Budget", "The board approved a budget of {a} for {n}.", "How much money was approved for {n}?|budget of {n}|what may {n} cost?", money),
    ("Appointments", "{a} was elected chair of {n} for two years.", "Who chairs {n}?|chair of {n}|who was elected at {n}?", person),
    ("Incident", "The fault at {n} was caused by {a}.", "What caused the failure at {n}?|why did {n} fail?|reason for the outage of {n}", one("a loose cable,a worn bearing,a full disk,frost,an expired certificate,a blocked valve")),
    ("Schedule", "The repair of {n} begins on {a}.", "When does the work on {n} start?|start of the repair at {n}", date),
    ("Results", "{n} treated {a} of water in the year under report.", "How much water went through {n}?|volume treated at {n}", number(100, 9000, " megalitres")),
    ("Staff", "{a} left {n} at the end of the month.", "Who left {n}?|which person quit at {n}?", person),
    ("Opening", "{n} opened to the public in {a}.", "When did {n} open?|since when is {n} open?|opening year of {n}", number(1850, 2024)),
    ("Contract", "The contract for {n} was awarded to {a}.", "Who got the contract for {n}?|which firm works on {n}?|supplier of {n}", company),
    ("Storage", "Keep {t} in {a}.", "Where are {t} kept?|where should I put {t}?|storage of {t}", one("the basement,a locked cabinet,room 214,the cold store,the annex")),
    ("Disposal", "Old {t} are handed to {a}.", "What happens to old {t}?|where do discarded {t} go?", company),
    ("Ordering", "New {t} are ordered from {a} with form {c}.", "Whom do I ask for new {t}?|how do I get {t}?|who orders {t}?", person),
    ("Inspection", "All {t} are inspected every {a}.", "How often are {t} checked?|inspection interval of {t}", number(2, 24, " months")),
    ("Reset", "To reset the device, hold the button for {a} until the light blinks.", "How do I reset the device?|how long must I press the button?|factory reset", number(3, 30, " seconds")),
    ("Cleaning", "Clean the filter every {a} with warm water.", "How often must the filter be cleaned?|when to wash the filter", number(2, 12, " weeks")),
    ("Installation", "Install the package with `{a}`.", "How do I install it?|installation command|how to set it up", one("pip install heron,apt install kestrel,make install,brew install larch,npm i iris")),
    ("Upgrade", "Before an upgrade, run `{a}` and make a backup.", "What must be done before upgrading?|command before an upgrade", one("heronctl stop,kestrel migrate,systemctl stop larch,iris export")),
    ("Limits", "A single file may have at most {a}.", "How large can a file be?|maximum upload size|file size limit", number(5, 900, " MB")),
    ("Pets", "Dogs are welcome on a lead; other animals stay outside.", "Can I bring my dog?|are animals allowed?|are cats permitted?", None),
    ("Photography", "Taking photographs is allowed without flash.", "May I take pictures?|is a flash allowed?|can visitors film?", None),
    ("Sick leave", "A doctor's note is needed from the {a} day of an illness.", "When do I need a doctor's note?|from which day is a certificate required?", one("second,third,fourth,fifth")),
    ("Overtime", "Overtime is paid at {a} of the normal wage.", "How is overtime paid?|overtime rate", number(110, 200, " %")),
)  # fmt: skip
FILLERS = (
    "This section was revised last year.", "Further details are in the annex.", "Questions are answered by the office.", "Exceptions need the consent of the management.",
    "The same holds for branches abroad.", "Everyone is asked to help.", "Earlier rules on this are no longer in force.", "Details change from time to time.",
    "The minutes were approved without changes.", "No other business was raised.", "A summary was sent to all members.", "See also the following section.",
    "The weather was dry and mild in most weeks.", "Members thanked the outgoing secretary.", "The figures are provisional.",
)  # fmt: skip
TITLES = "Handbook,Staff guide,Licence agreement,Terms of service,Minutes,Monthly report,User manual,Policy,Agreement,Procedure,FAQ,Guide".split(
    ","
)


def fact_case(rng: random.Random) -> Case:
    chosen = rng.sample(FACTS, rng.randint(5, 11))
    things, names = rng.sample(THINGS, 3), list({name(rng) for _ in range(4)})
    style, title = rng.randrange(5), f"{rng.choice([*NOUNS, ''])} {rng.choice(TITLES)}".strip()
    entries, question, answer = [], "", ""
    number_ = rng.randint(1, 9)
    for place, (head, sentence, ways, value) in enumerate(chosen):
        for turn in range(
            2 if place == 0 and ("{n}" in sentence or "{t}" in sentence) else 1
        ):  # the same said of another
            a = value(rng) if value else ""
            slots = {"a": a, "n": names[turn % len(names)], "t": things[turn], "c": code(rng)}
            if place and rng.random() < 0.5:
                slots |= {"n": rng.choice(names), "t": rng.choice(things)}
            said = sentence.format(**slots)
            around = rng.sample(FILLERS, rng.choice([0, 0, 1, 2, 3]))
            at = rng.randint(0, len(around))
            way = rng.choice(ways.split("|")).format(**slots)
            asked = rng.choice(ways.split("|")).format(**slots)
            body = " ".join([*around[:at], said, *around[at:]])
            clause = f"{number_}.{place + 1}" if rng.random() < 0.5 else str(place + 1)
            line = (
                f"{clause} {head}. {body}",
                f"{head}: {body}",
                body,
                f"Q: {asked}\nA: {body}",
                f"({chr(97 + place)}) {body}",
            )[style]
            right = place == 0 and turn == 0
            entries.append((head, line, right))
            if right:
                question, answer = way, a
    if rng.random() < 0.25:
        entries = [entry for entry in entries if not entry[2]]
    rng.shuffle(entries)
    headed, found = rng.random() < 0.6, []
    for run in parts(entries, rng, rng.choice([(1, 1), (1, 3), (2, 5)])):
        hit = any(right for *_, right in run)
        path = (title, run[0][0]) if len(run) == 1 else (title, rng.choice(SECTIONS))
        text = "\n".join(line for _, line, _ in run)
        found.append(Block(under(path, text) if headed else text, hit, answer if hit else ""))
    return Case(question, tuple(found), "facts")


# --- tables ----------------------------------------------------------------------------------------------------------

LINES = (
    "Net sales,Cost of sales,Gross profit,Operating expenses,Operating income,Interest expense,Net income,Total assets,"
    "Total liabilities,Cash and cash equivalents,Inventories,Accounts receivable,Capital expenditures,Depreciation,Dividends paid,"
    "Research and development,Income taxes,Total equity,Long-term debt,Goodwill,Headcount,Revenue,Share repurchases"
).split(",")
SAID_LINES = {
    "Net sales": "sales", "Capital expenditures": "capex", "Inventories": "stock of goods", "Headcount": "number of employees",
    "Income taxes": "tax", "Share repurchases": "buybacks", "Research and development": "R&D spending", "Net income": "profit",
    "Total equity": "shareholders' equity", "Cash and cash equivalents": "cash", "Dividends paid": "dividends", "Revenue": "turnover",
}  # fmt: skip
COLUMNS: dict[str, tuple[str, Value]] = {
    "Capacity": ("capacity|how much does {r} hold?", number(5, 900, " m3")),
    "Opened": ("opening year|when did {r} open?", number(1890, 2024)),
    "Owner": ("owner|who owns {r}?", person),
    "Status": ("status|is {r} in use?", one("active,closed,planned,under repair")),
    "Budget": ("budget|how much money does {r} have?", money),
    "Contract ends": ("end of the contract|until when does the contract of {r} run?", date),
    "Serial number": ("serial number", code),
    "Manager": ("manager|who manages {r}?|who is in charge of {r}?", person),
    "Staff": ("staff|how many people work at {r}?", number(2, 400)),
    "Price": ("price|what does {r} cost?|how much is {r}?", money),
    "Region": ("region|in which region is {r}?|where is {r}?", lambda rng: rng.choice(NOUNS)),
    "Depth": ("depth|how deep is {r}?", number(1, 90, ".5 m")),
    "Share": ("share|what percentage has {r}?", number(1, 99, " %")),
    "Inspected": ("inspection date|when was {r} last inspected?", date),
    "In stock": ("stock|how many {r} are in stock?|how many are left of {r}?", number(0, 900)),
    "Phone": ("phone number|how do I call {r}?", phone),
    "Time": ("time|when is {r}?|at what time does {r} begin?", clock),
    "Preis": ("Preis|was kostet {r}?", money),
    "Ort": ("Ort|wo ist {r}?", lambda rng: rng.choice(NOUNS)),
    "Quantité": ("quantité|combien y a-t-il de {r} ?", number(1, 900)),
    "Precio": ("precio|¿cuánto cuesta {r}?", money),
}
ASK_FIGURE = (
    "What was {r} in {c}?", "How much was {r} in {c}?", "What is the FY{c} {r}?", "{r} for {c}", "{r} {c}", "how high was {r} {c}?",
    "What amount of {r} did the company report for {c}?",
)  # fmt: skip
ASK_CELL = ("What is the {c} of {r}?", "{r}: {c}?", "Which {c} does {r} have?", "what {c} is listed for {r}", "Tell me the {c} for {r}.", "{r} {c}", "{c} {r}")  # fmt: skip


def rows_as_text(columns: Sequence[str], rows: Sequence[Sequence[str]], style: int) -> str:
    if style == 0:
        return "\n".join(
            "; ".join(f"{column}: {cell}" for column, cell in zip(columns, row, strict=True)) for row in rows
        )
    if style == 1:
        return "\n".join(" | ".join(row) for row in [columns, *rows])
    if style == 2:
        lines = [columns, ["---"] * len(columns), *rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in lines)
    if style == 3:
        return "\n".join("\t".join(row) for row in [columns, *rows])
    return f"{' | '.join(columns)}: " + "\n".join(" | ".join(row) for row in rows)


def table_case(rng: random.Random) -> Case:
    figures = rng.random() < 0.4
    if figures:
        labels, last = rng.sample(LINES, rng.randint(5, 16)), rng.randint(2012, 2025)
        columns = [str(last - back) for back in range(rng.randint(2, 4))]
        cells = {(r, c): f"{rng.choice(['', '$'])}{rng.randint(10, 99_999):,}" for r in labels for c in columns}
        first, title = (
            rng.choice(["Item", "", "in millions"]),
            f"{company(rng)} {rng.choice(['annual report', 'results', '10-K', 'accounts'])}",
        )
    else:
        labels = list({name(rng) for _ in range(rng.randint(4, 16))})
        columns = rng.sample(list(COLUMNS), rng.randint(2, 6))
        cells = {(r, c): COLUMNS[c][1](rng) for r in labels for c in columns}
        first, title = (
            rng.choice(["Name", "Site", "Item"]),
            f"{rng.choice(NOUNS)} {rng.choice(['list', 'register', 'overview', 'annex', 'inventory'])}",
        )
    row, column, style = labels[0], rng.choice(columns), rng.randrange(5)
    reverse = not figures and sum(cells[r, column] == cells[row, column] for r in labels) == 1 and rng.random() < 0.25
    said = SAID_LINES.get(row, row) if figures and rng.random() < 0.5 else row
    if rng.random() < 0.4:
        said = said.lower()
    if figures:
        question, answer = rng.choice(ASK_FIGURE).format(r=said, c=column), cells[row, column]
    elif reverse:
        ways = ("Which one has {c} {v}?", "{c} {v}", "Which {f} has the {c} {v}?", "what has {v} as {c}")
        question, answer = rng.choice(ways).format(c=column.lower(), v=cells[row, column], f=first.lower()), row
    else:
        way = rng.choice(COLUMNS[column][0].split("|")).replace("{r}", said)
        question = (
            way if way.endswith("?") else rng.choice(ASK_CELL).format(c=rng.choice([way, column.lower()]), r=said)
        )
        answer = cells[row, column]
    path = rng.choice([(title,), (title, rng.choice(SECTIONS)), (title, "Table 3"), ()])
    gone = rng.random() < 0.25
    shown = [c for c in columns if c != column] if gone and rng.random() < 0.5 and len(columns) > 2 else list(columns)
    order = labels[1:] if gone and shown == columns else list(labels)
    rng.shuffle(order)
    found = []
    for run in parts(order, rng, rng.choice([(1, 1), (2, 5), (4, 12)])):
        hit = row in run and not gone
        text = rows_as_text([first, *shown], [[r, *(cells[r, c] for c in shown)] for r in run], style)
        found.append(Block(under(path, text), hit, answer if hit else ""))
    if rng.random() < 0.6:  # another year, or the same rows in another table
        if figures:
            years = [str(int(columns[-1]) - 1 - back) for back in range(2)]
            other = rows_as_text(
                [first, *years], [[r, *(f"{rng.randint(10, 99_999):,}" for _ in years)] for r in labels[:5]], style
            )
        else:
            names = rng.sample([c for c in COLUMNS if c not in columns], 2)
            other = rows_as_text(
                [first, *names], [[r, *(COLUMNS[c][1](rng) for c in names)] for r in labels[:5]], style
            )
        found.append(Block(under(path, other)))
    return Case(question, tuple(found), "rows")


# --- mails -----------------------------------------------------------------------------------------------------------


def mail_case(rng: random.Random) -> Case:
    topics = rng.sample(THINGS, 4)
    found, question = [], ""
    answerable, style, split = rng.random() < 0.8, rng.random(), rng.random() < 0.5
    field = rng.choice(["From", "To", "Date", "Subject", "Cc", "body"])
    for place, topic in enumerate(topics):
        values = {
            "From": f"{person(rng)} <{email(rng)}>" if rng.random() < 0.5 else person(rng), "To": person(rng), "Date": date(rng),
            "Cc": person(rng), "Subject": f"{rng.choice(['', 'Re: ', 'Fwd: '])}{topic} {rng.choice(['order', 'question', 'delay', 'list', 'offer'])}",
        }  # fmt: skip
        day, who = date(rng), person(rng)
        body = f"Hello,\nthe {topic} will be ready on {day}. Please ask {who} for the papers. {rng.choice(FILLERS)}"
        if place == 0:
            question, answer = {
                "From": (rng.choice(["Who wrote the mail about {t}?", "sender of the mail on {t}", "who sent the message about {t}?"]), values["From"]),
                "To": (rng.choice(["Who got the mail about {t}?", "to whom was the mail about {t} sent?"]), values["To"]),
                "Date": (rng.choice(["When was the mail about {t} sent?", "date of the message on {t}"]), values["Date"]),
                "Subject": (rng.choice(["What is the subject of the mail about {t}?"]), values["Subject"]),
                "Cc": (rng.choice(["Who is in copy of the mail about {t}?", "cc of the mail about {t}"]), values["Cc"]),
                "body": (rng.choice(["When will the {t} be ready?", "{t} ready when"]), day),
            }[field]  # fmt: skip
            question = question.format(t=topic)
            if not answerable:
                values.pop(field, None)
                if field == "body":
                    body = f"Hello,\nthe {topic} are late. Please ask {who} for the papers. {rng.choice(FILLERS)}"
        head = "\n".join(f"{key}: {value}" for key, value in values.items())
        texts = [(head, field != "body"), (body, field == "body")] if split else [(f"{head}\n\n{body}", True)]
        for text, holds in texts:
            hit = place == 0 and holds and answerable
            shown = under((values.get("Subject") or topic,), text) if style < 0.6 else text
            found.append(Block(shown, hit, answer if hit else ""))
    return Case(question, tuple(found), "mail")


# --- all -------------------------------------------------------------------------------------------------------------

MAKERS = {form_case: 0.27, table_case: 0.23, fact_case: 0.24, option_case: 0.12, change_case: 0.09, mail_case: 0.05}


def made_up(rng: random.Random, most: int) -> Case:
    """A case with at most so many blocks."""
    case = rng.choices(list(MAKERS), list(MAKERS.values()))[0](rng)
    if len(case.blocks) < 3 and rng.random() < 0.7:  # blocks of another document of any kind
        more = [Block(each.text) for each in made_up(rng, 4).blocks]
        case = Case(case.question, (*case.blocks, *more), case.kind)
    if len(case.blocks) <= most:
        return case
    right = [block for block in case.blocks if block.answers]
    wrong = [block for block in case.blocks if not block.answers]
    kept = [*right[:1], *rng.sample(wrong, min(len(wrong), most - len(right[:1])))]
    return Case(case.question, tuple(kept), case.kind)
