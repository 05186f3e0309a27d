"""Quizzes: questions with numbers, graded by tolerance. `make quiz` lists them, `make quiz-03` asks those of one.

    python3 common/course/quiz.py quiz[-NN] [ANSWERS]

With ANSWERS, separated by blanks, nothing is asked. A quiz is a page, notes/quizzes/NN-NAME.md. Its questions are
headings of the second level. Below each stand its text, then comments, then the explanation in <details>:

    <!-- answer: EXPRESSION -->        a number, as tests/figures.py has expressions; or a choice's letter, "- b: ..."
    <!-- order: FILE from "LINE" -->   instead: the choices are lines of a file, and this is where they stand in it. The
                                       letters in their order are the answer, "bca"; the code of a choice is looked for
    <!-- within: 5 % -->               how far from it an answer may be; 1 % if nothing is said
    <!-- not EXPRESSION: SENTENCE -->  what to say to somebody who answers that

Exit codes: 0 all answers were right, 1 not all, 2 the request is wrong.
"""
import glob
import os
import re
import sys

from learner import MINE, Wrong, read_note, run_command, write_note

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tests"))
# pylint: disable=wrong-import-position
import explain
import figures

PAGES = "notes/quizzes/[0-9][0-9]-*.md"
DONE = os.path.join(MINE, "quizzes")  # the numbers of those that were all right
TRIES = 3
COMMENT = re.compile(r"<!-- (answer|order|within|not) ?(.*?): (.*?) -->\n?", re.DOTALL)
CHOICE = re.compile(r"^- ([a-z]):(?: `([^`]*)`)?", re.MULTILINE)


def tile(rows=64, columns=64, mn_major=False, swizzle=128):
    """A tile of fp16 numbers that begins at 0x400 in shared memory."""
    return explain.Tile(rows, columns, 2, mn_major, swizzle, 0x400)


# What an expression may ask for besides what figures.py has: where things lie, as make explain says.
EXPRESSIONS = dict(figures.EXPRESSIONS, next=next, range=range,
                   place=lambda row, column, **shape: tile(**shape).address(row, column),
                   descriptor=lambda slice_number, **shape: tile(**shape).descriptor(slice_number))


def number(text):
    """The number that somebody has typed, with or without commas and a unit, or as 0x400; None if it is none."""
    if re.fullmatch(r"0x[0-9a-f]+", text.strip().lower()):
        return float(int(text, 16))
    match = re.fullmatch(r"([-+]?[\d.,]*\d\.?(?:e[-+]?\d+)?)\s*([a-zA-Zµ/%]*)", text.strip())
    try:
        return float(match[1].replace(",", "")) if match else None
    except ValueError:
        return None


def in_order(choices, place):
    """The letters of choices (letter, code) as their code stands in a file. `place`: 'FILE from "LINE"'."""
    path, start = re.fullmatch(r'(\S+) from "(.*)"', place).groups()
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begin = text.index(start)
    return "".join(letter for _, letter in sorted((text.index(code, begin), letter) for letter, code in choices))


class Question:
    """One question of a quiz: its text, its answer, what else somebody may answer, and the explanation."""

    def __init__(self, text):
        self.heading, _, rest = text.partition("\n")
        marks = COMMENT.findall(rest)
        body, _, explanation = rest.partition("<details>")
        self.text = re.sub(r"<!--.*?-->\n?", "", body, flags=re.DOTALL).strip()
        folded = r"<summary>.*?</summary>|</details>|<!--.*?-->\n?"
        self.explanation = re.sub(folded, "", explanation, flags=re.DOTALL).strip()
        choices = CHOICE.findall(self.text)
        self.choices = [letter for letter, _ in choices]
        place = next((value for kind, _, value in marks if kind == "order"), None)
        self.is_order = place is not None
        self.answer = (in_order(choices, place) if self.is_order else
                       self.value(next(value for kind, _, value in marks if kind == "answer")))
        self.within = next((float(value.rstrip(" %")) / 100 for kind, _, value in marks if kind == "within"), 0.01)
        self.others = [(self.value(given), " ".join(sentence.split()))
                       for kind, given, sentence in marks if kind == "not"]

    def value(self, expression):
        if self.choices:
            return expression
        return float(eval(expression, dict(EXPRESSIONS)))  # pylint: disable=eval-used

    @property
    def solution(self):
        """The answer as a reader needs it: not all digits, and letters one by one."""
        if self.choices:
            return " ".join(self.answer)
        return f"{self.answer:,.0f}" if self.answer.is_integer() or self.answer >= 1000 else f"{self.answer:.3g}"

    def is_right(self, given):
        return self.is_near(given, self.answer)

    def is_near(self, given, value):
        if self.choices:
            return given == value
        return abs(given - value) <= self.within * abs(value) * (1 + 1e-9)

    def read(self, typed):
        """What an answer says; ValueError if it is neither a number nor a choice."""
        given = re.sub(r"[\s,:]", "", typed.lower()) if self.choices else number(typed)
        if self.is_order and sorted(given) != self.choices:
            raise ValueError(f"the answer has each of the letters {', '.join(self.choices)} once")
        if given is None or (self.choices and not self.is_order and given not in self.choices):
            raise ValueError(f"one of {', '.join(self.choices)} is an answer" if self.choices else
                             "the answer is a number")
        return given

    def remark(self, given):
        """What to say to an answer that is not right."""
        return next((sentence for value, sentence in self.others if self.is_near(given, value)), "")


class Quiz:
    """A page of questions."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.title, *questions = re.split(r"^## ", file.read(), flags=re.MULTILINE)
        self.number = os.path.basename(path)[:2]
        self.title = re.sub(r"<!--.*?-->\n?", "", self.title, flags=re.DOTALL).strip().removeprefix("# ")
        self.questions = [Question(text) for text in questions]


def shown(text):
    """Markdown as a terminal shows it: links without their addresses."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)


def ask(question, answers):
    """Whether one of the tries was right."""
    for left in reversed(range(TRIES)):
        try:
            typed = answers.pop(0) if answers is not None else input("  answer: ")
        except (EOFError, IndexError):
            raise Wrong(f"no answer to: {question.heading}") from None
        if answers is not None:
            print(f"  answer: {typed}")
        try:
            given = question.read(typed)
            if question.is_right(given):
                print("  right\n")
                return True
            remark = question.remark(given)
        except ValueError as error:
            remark = str(error)
        if answers is not None:
            left = 0
        print(f"  not {typed.strip() or 'that'}. {remark}".rstrip() + ("\n" if not left else ""))
        if not left:
            return False
    return False


def done():
    return set(read_note(DONE).split())


def run(quiz, answers):
    if answers and len(answers) != len(quiz.questions):
        raise Wrong(f"quiz {quiz.number} has {len(quiz.questions)} questions, and ANSWERS has {len(answers)}")
    print(f"{shown(quiz.title)}\n")
    right = 0
    for place, question in enumerate(quiz.questions, 1):
        print(f"{place}. {shown(question.heading)}\n" + (f"\n{shown(question.text)}\n" if question.text else ""))
        is_right = ask(question, answers or None)
        right += is_right
        if not is_right:
            print(f"The answer is {question.solution}.")
        print(f"{shown(question.explanation)}\n")
    print(f"{right} of {len(quiz.questions)} right")
    if right < len(quiz.questions):
        return 1
    write_note(DONE, " ".join(sorted(done() | {quiz.number})) + "\n")
    return 0


def main(word="quiz", answers=""):
    quizzes = {os.path.basename(path)[:2]: path for path in sorted(glob.glob(PAGES))}
    if word == "quiz":
        for key, path in quizzes.items():
            print(f"[{'x' if key in done() else ' '}] make quiz-{key}   {shown(Quiz(path).title.splitlines()[0])}")
        return 0
    key = word.removeprefix("quiz-")
    if key not in quizzes:
        raise Wrong(f"{word}: there is no such quiz; there are {' '.join(quizzes)}")
    return run(Quiz(quizzes[key]), answers.split())


if __name__ == "__main__":
    run_command("quiz", lambda: main(*sys.argv[1:3]))
