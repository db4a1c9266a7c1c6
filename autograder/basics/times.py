"""Times as people and platforms write them, read by one function: what cannot be read is an error,
never a guess.

nbgrader's `timestamp.txt`, Gradescope's list, Blackboard's receipts and `course.toml` all come
here. A zone is what nbgrader takes for one: an offset, or a name of the time zone database, such as
EST or Europe/Berlin. Three readings differ from nbgrader's: `+0200` is two hours, which nbgrader
takes for 200 seconds; a zone that nobody knows is an error, which nbgrader takes for UTC; and
02.10.2026, for nbgrader the tenth of February, is no time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:\s*(?P<half>[ap])\.?m\.?(?![\w/]))?(?:\s*o.clock)?(?:\s*(?P<zone>\S+))?"
)
_FORMS = tuple(
    re.compile(rf"(?:[a-z]+,?\s+)?{day},?(?:\s+at)?[\sT]+{_CLOCK}", re.IGNORECASE)
    for day in (
        r"(?P<year>\d{4})-(?P<number>\d\d)-(?P<day>\d\d)",
        rf"{_MONTH}\s+(?P<day>\d{{1,2}}),?\s+(?P<year>\d{{4}})",
        rf"(?P<day>\d{{1,2}})\.?\s+{_MONTH}\s+(?P<year>\d{{4}})",
    )
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.IGNORECASE)
_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")


def read_time(text: str, zone: str = "", *, unnamed: str = "") -> datetime:
    """The time in the text, in UTC.

    Args:
        zone: the course's own zone: that of times which name none, and the one that explains
            abbreviations such as CEST. Where it is empty, neither can be read.
        unnamed: the zone of times which name none, where that is another; nbgrader's notes are in
            UTC then.

    Raises:
        ValueError: there is no time in the text, its zone is not known, or it has none; one line
            that says which.
    """
    text = text.strip()
    found = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if found is None:
        raise ValueError(f"{text[:60]!r} is no time: write it like 2026-10-02 23:59 Europe/Berlin")
    try:
        moment = datetime(*_numbers(found.groupdict()))
        return moment.replace(
            tzinfo=_zone_of(moment, found["zone"] or unnamed or zone, zone)
        ).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text[:60]!r} is no time: {error}") from error


def read_time_in(text: str, language: str, zone: str) -> datetime:
    """A time as Moodle writes it in that language: a day, a month by name or number, a year, a
    clock; in UTC.

    Args:
        language: the two letters of it, by which the names of the months are known.
        zone: the course's own zone: Moodle names none.

    Raises:
        ValueError: there is no time in the text, or no zone for it.
    """
    if language == "en":
        return read_time(text, zone)
    clock = re.search(r"(\d{1,2}):(\d\d)(?!\d)\s*(.*)$", text.strip())
    words = text.strip()[: clock.start()] if clock else ""
    month, rest = _month_in(words, language)
    numbers = [int(number) for number in re.findall(r"\d+", rest)]
    year = next((number for number in numbers if number > 999), 0)
    others = [number for number in numbers if number != year]
    if clock is None or not year or len(others) != (1 if month else 2):
        raise ValueError(
            f"{text[:60]!r} is no time as Moodle writes one in the language {language!r}"
        )
    month, day = (month, others[0]) if month else (others[0], others[1])
    # Ukrainian has both: 21:59 PM
    half = _half_of_the_day(clock[3], language) if int(clock[1]) <= 12 else ""
    return read_time(f"{year:04}-{month:02}-{day:02} {clock[1]}:{clock[2]} {half}".strip(), zone)


def _month_in(words: str, language: str) -> tuple[int, str]:
    """The month that is named in the words, 0 for none, and the words without it. A name may have
    an ending.
    """
    from babel import Locale

    months = Locale.parse(language).months
    named = {
        name.casefold(): int(number)
        for form in ("format", "stand-alone")
        for number, name in months[form]["wide"].items()
    }
    lower = words.casefold()
    for name in sorted(named, key=len, reverse=True):
        if re.search(r"[^\W\d_]", name) and (
            match := re.search(rf"(?<!\w){re.escape(name)}", lower)
        ):
            return named[name], lower[: match.start()] + lower[match.end() :]
    return 0, lower


def _half_of_the_day(text: str, language: str) -> str:
    """ "am" or "pm", where the clock of that language says one; "" for a clock of 24 hours."""
    from babel import Locale

    said = re.sub(r"[\W_]", "", text).casefold()
    periods = Locale.parse(language).day_periods["format"]
    for half in ("am", "pm"):
        if said and said in {
            half,
            *(re.sub(r"[\W_]", "", str(p.get(half, ""))).casefold() for p in periods.values()),
        }:
            return half
    return ""


def find_zone(name: str) -> tzinfo | None:
    """The zone of that name in the time zone database; None where there is none."""
    if name.upper() in ("Z", "UTC", "GMT"):
        return UTC
    if not _ZONE_NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (
        ValueError,
        OSError,
        KeyError,
    ):  # a KeyError says that there is no such zone, an OSError that it is a folder
        return None


def _numbers(parts: dict[str, str | None]) -> tuple[int, int, int, int, int, int, int]:
    """Year to microsecond."""
    month = int(parts.get("number") or 0) or 1 + _MONTHS.index(
        (parts.get("month") or "").lower()[:3]
    )
    hour = int(parts["hour"] or 0)
    if half := parts["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f"there is no {hour} o'clock {half.lower()}m")
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    micros = int(f"{parts['fraction'] or '0':0<6}"[:6])
    return (
        int(parts["year"] or 0),
        month,
        int(parts["day"] or 0),
        hour,
        int(parts["minute"] or 0),
        int(parts["second"] or 0),
        micros,
    )


def _zone_of(moment: datetime, name: str, home: str) -> tzinfo:
    if not name:
        raise ValueError(f"{moment} has no time zone: set `timezone` under [course] in course.toml")
    if offset := _OFFSET.fullmatch(name):
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))
    if zone := find_zone(name):
        return zone
    # An abbreviation stands for several zones: IST alone is three. The course's own zone may say
    # which.
    at_home = find_zone(home) if home else None
    for fold in (0, 1):
        if at_home and moment.replace(tzinfo=at_home, fold=fold).tzname() == name.upper():
            return timezone(moment.replace(tzinfo=at_home, fold=fold).utcoffset() or timedelta())
    raise ValueError(
        f"the time zone {name[:40]!r} is not known here: write an offset, or a name such as "
        "Europe/Berlin"
        + (
            ""
            if home
            else ", or set `timezone` under [course] in course.toml where it is the course's own"
        )
    )
