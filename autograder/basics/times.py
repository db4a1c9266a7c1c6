"""Read times as people and platforms write them: an unreadable time is an error, never a guess.

nbgrader's `timestamp.txt`, Gradescope's list, Blackboard's receipts and `course.toml` are all read
here. A zone is an offset, or a name of the time zone database, such as EST or Europe/Berlin, as for
nbgrader. Three readings differ from nbgrader's: `+0200` is two hours, which nbgrader takes for 200
seconds; an unknown zone is an error, which nbgrader takes for UTC; and 02.10.2026, for nbgrader the
tenth of February, is no time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_MONTHS = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
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


def read_time(
    text: str,
    zone: str = "",
    *,
    unnamed: str = "",
) -> datetime:
    """The time in the text, in UTC.

    Args:
        zone: the course's zone, for times without a zone and for abbreviations such as CEST; where
            it is empty, neither can be read.
        unnamed: the zone of times without a zone, where it is not the course's, such as UTC for
            nbgrader's notes.

    Raises:
        ValueError: there is no time in the text, the zone is unknown, or there is none; one line
            says which.
    """
    text = text.strip()
    matches = [form.fullmatch(text) for form in _FORMS]
    time = next(filter(None, matches), None)
    if time is None:
        raise ValueError(
            f"{text[:60]!r} is no time: write it like 2026-10-02 23:59 Europe/Berlin"
        )
    try:
        moment = _as_datetime(time.groupdict())
        named_zone = time["zone"] or unnamed or zone
        return moment.replace(
            tzinfo=_resolve_zone(moment, named_zone, zone)
        ).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text[:60]!r} is no time: {error}") from error


def read_time_in(
    text: str,
    language: str,
    zone: str,
) -> datetime:
    """Read a time as Moodle writes it in a language: a day, a month by name or number, a year, a
    clock; in UTC.

    Args:
        language: the two letters of the language, whose names of the months are read.
        zone: the course's zone, since Moodle names no zone.

    Raises:
        ValueError: there is no time in the text, or no zone for it.
    """
    if language == "en":
        return read_time(text, zone)
    clock = re.search(r"(\d{1,2}):(\d\d)(?!\d)\s*(.*)$", text.strip())
    date = text.strip()[: clock.start()] if clock else ""
    month, date = _take_month(date, language)
    numbers = [int(number) for number in re.findall(r"\d+", date)]
    year = next((number for number in numbers if number > 999), 0)
    small = [number for number in numbers if number != year]
    if month:
        small.append(month)
    if clock is None or not year or len(small) != 2:
        raise ValueError(
            f"{text[:60]!r} is no time as Moodle writes one in the language {language!r}"
        )
    day, month = small if month else reversed(small)
    hour, minute, half = clock.groups()
    # Ukrainian has both a clock of 24 hours and a half of the day: 21:59 PM
    half = _read_half_of_day(half, language) if int(hour) <= 12 else ""
    return read_time(
        f"{year:04}-{month:02}-{day:02} {hour}:{minute} {half}".strip(), zone
    )


def _take_month(date: str, language: str) -> tuple[int, str]:
    """The month that a date names, 0 for none, and the date without the name, which may have an
    ending.
    """
    from babel import Locale

    months = Locale.parse(language).months
    numbers: dict[str, int] = {}
    for form in ("format", "stand-alone"):
        for number, name in months[form]["wide"].items():
            numbers[name.casefold()] = int(number)
    date = date.casefold()
    for name in sorted(numbers, key=len, reverse=True):
        match = re.search(rf"(?<!\w){re.escape(name)}", date)
        if match and re.search(r"[^\W\d_]", name):
            return numbers[name], date[: match.start()] + date[match.end() :]
    return 0, date


def _read_half_of_day(text: str, language: str) -> str:
    """The half of the day in a language's words, "am" or "pm"; "" for a clock of 24 hours."""
    from babel import Locale

    word = _letters(text)
    periods = Locale.parse(language).day_periods["format"].values()
    for half in ("am", "pm"):
        names = [_letters(str(period.get(half, ""))) for period in periods]
        if word and word in (half, *names):
            return half
    return ""


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).casefold()


def find_zone(name: str) -> tzinfo | None:
    """The zone of that name in the time zone database, or None."""
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
    ):  # KeyError: no such zone; OSError: the name of a folder
        return None


def _as_datetime(parts: dict[str, str | None]) -> datetime:
    name = (parts.get("month") or "")[:3].lower()
    month = _MONTHS.index(name) + 1 if name else int(parts["number"] or 0)
    hour = int(parts["hour"] or 0)
    if half := parts["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f"there is no {hour} o'clock {half.lower()}m")
        hour %= 12
        if half.lower() == "p":
            hour += 12
    fraction = f"{parts['fraction'] or '0':0<6}"
    return datetime(
        int(parts["year"] or 0),
        month,
        int(parts["day"] or 0),
        hour,
        int(parts["minute"] or 0),
        int(parts["second"] or 0),
        int(fraction[:6]),
    )


def _resolve_zone(
    moment: datetime,
    name: str,
    course_zone: str,
) -> tzinfo:
    """The zone of a name at a moment; the course's zone explains abbreviations.

    Raises:
        ValueError: the name is empty or unknown.
    """
    if not name:
        raise ValueError(
            f"{moment} has no time zone: set `timezone` under [course] in course.toml"
        )
    if offset := _OFFSET.fullmatch(name):
        size = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-size if offset[1] == "-" else size)
    if zone := find_zone(name):
        return zone
    # An abbreviation stands for several zones: IST alone is three. The course's zone may say which.
    local = find_zone(course_zone) if course_zone else None
    for fold in (0, 1):
        local_moment = moment.replace(tzinfo=local, fold=fold)
        if local and local_moment.tzname() == name.upper():
            return timezone(local_moment.utcoffset() or timedelta())
    message = (
        f"the time zone {name[:40]!r} is not known here: write an offset, or a name such as "
        "Europe/Berlin"
    )
    if not course_zone:
        message += ", or set `timezone` under [course] in course.toml where it is the course's own"
    raise ValueError(message)


def shown_time(moment: datetime, zone: str = "") -> str:
    """A time for people, in the course's zone, else in UTC."""
    local_zone = find_zone(zone) if zone else None
    if local_zone is None:
        return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return moment.astimezone(local_zone).strftime("%Y-%m-%d %H:%M %Z")
