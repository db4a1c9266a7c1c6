"""Every error that a person may see, on one page.

Two families, never mixed:

* `KitError`: something is wrong with the course, the command or the machine. Whoever runs the kit
  reads its message. `exit_status` is what the command line ends with.
* `StudentFault`: something is wrong with a submission. A fault never ends a command, but becomes
  the outcome of one test and is written into the result.
"""

from __future__ import annotations

from typing import ClassVar, Literal

FaultOutcome = Literal["error", "timeout", "crashed", "forbidden", "missing"]
"""Outcomes of a test where a student's code gave no answer."""


class KitError(Exception):
    """Wrong use of the kit. The message names the file or option and says what to do."""

    exit_status: ClassVar[int] = 2


class ResultsInUse(KitError):
    """Another run writes the same results."""


class UnknownAssignment(KitError):
    """The course has no assignment of that name."""


class CourseNotFound(KitError):
    """No folder from this one upwards has a `course.toml`."""


class BadCourseFile(KitError):
    """`course.toml` has a setting that does not exist, or a value that makes no sense."""


class BadSource(KitError):
    """A source notebook cannot be built: an unclosed solution region, an unknown tag, two questions
    of one name.
    """


class StaleBuild(KitError):
    """`build --check` found a built notebook that differs from a new build of its source."""

    exit_status = 1


class BadSuite(KitError):
    """A hidden suite cannot grade: no tests, no points, a question that the notebook does not
    have.
    """


class NotProven(KitError):
    """`verify` found a mistake that no test catches, or a right answer that loses points."""

    exit_status = 1


class NothingToGrade(KitError):
    """The folder given holds no submission."""


class IsolationUnavailable(KitError):
    """This machine cannot build the requested walls."""


class DeviceUnavailable(KitError):
    """The requested device cannot run kernels: there is none here, or the assignment has no
    kernels.
    """


class ClusterUnavailable(KitError):
    """No scheduler answers, or no machine of the cluster can grade."""


class PlatformUnavailable(KitError):
    """A learning platform does not answer, does not let marks be written, or did not take all
    marks.
    """

    exit_status = 1


class HostFailed(KitError):
    """The sandbox host did not start, died, or gives no worker. No submission is to blame, so the
    error never becomes the outcome of a test.
    """

    exit_status = 1


class WorkerKilled(HostFailed):
    """A worker was killed from outside, by the machine where its memory runs out or by a person;
    the host lives on.
    """


class SuiteFault(KitError):
    """A test of the hidden suite failed by itself. No submission is to blame.

    Attributes:
        trace: the traceback, from the suite's own lines on.
    """

    exit_status = 1

    def __init__(self, message: str, trace: str = "") -> None:
        self.trace = trace
        super().__init__(message)


class UnreadableSubmission(KitError):
    """A submission cannot be graded: not a notebook, too large, unreadable. The rest of the class
    is graded.
    """

    exit_status = 1


class OutOfReach(UnreadableSubmission):
    """The system did not let a submission be read, so nothing is known of the student's file."""


class StudentFault(Exception):
    """A student's code gave no answer; results name the fault by `outcome`."""

    outcome: ClassVar[FaultOutcome] = "error"


class StudentError(StudentFault):
    """The student's code raised an exception.

    Attributes:
        type_name: name of the exception's class, e.g. "ValueError".
        message: the exception's text, shortened and without control characters.
        frames: the student's own frames, outermost first, as "cell softmax, line 3, in softmax:
            <source line>".
        kinds: names of the exception's class and its bases, so that a subclass of ValueError counts
            as a ValueError.
    """

    def __init__(
        self,
        type_name: str,
        message: str,
        frames: tuple[str, ...] = (),
        kinds: tuple[str, ...] = (),
    ) -> None:
        self.type_name = type_name
        self.message = message
        self.frames = frames
        self.kinds = kinds or (type_name,)
        super().__init__(f"{type_name}: {message}" if message else type_name)


class StudentMissing(StudentFault):
    """The submission defines no such function: the cell is gone, or did not run."""

    outcome = "missing"


class StudentTimeout(StudentFault):
    """A call took longer than its limit; the worker was killed."""

    outcome: ClassVar[Literal["timeout"]] = "timeout"


class SubmissionOver(StudentTimeout):
    """A submission has used up the time for all its calls and cells together."""


class StudentCrashed(StudentFault):
    """The worker process ended, ran out of memory, or sent a reply that is no answer."""

    outcome: ClassVar[Literal["crashed"]] = "crashed"


class StudentForbidden(StudentFault):
    """The call leaned on a function that this question forbids."""

    outcome = "forbidden"
