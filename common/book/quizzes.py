"""The questions of a quiz as fields on its page. quiz.js judges an answer as common/course/quiz.py does."""
import html
import json
import os
import re
import sys

from tree import STAGES, Broken, number_of, read

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "course"))
# pylint: disable=wrong-import-position
from quiz import Quiz

ANSWER = "<details><summary>Answer</summary>"
CHOICE = re.compile(r"<li>([a-z]): (.*?)</li>", re.DOTALL)


def after(stage):
    """The pages of the quizzes that notes/path.md has after a stage."""
    rows = re.findall(r"^\| ([\w, ]+?) \| (.*?) \|", read("notes/path.md"), re.MULTILINE)
    return [f"notes/{path}" for stages, links in rows if number_of(stage) in stages.split(", ")
            for path in re.findall(r"\((quizzes/[^)]*)\)", links)]


def before(path):
    """The stages after which notes/path.md has a quiz."""
    return [stage for stage in STAGES if path in after(stage)]


def field(question, name, choices):
    """The field of one question; `choices` are (letter, HTML)."""
    judge = {"answer": question.answer, "within": question.within, "others": question.others}
    if question.is_order:
        rows = "".join(f'<li data-letter="{letter}"><button type="button" class="up">up</button>'
                       f'<button type="button" class="down">down</button> <span>{words}</span></li>'
                       for letter, words in choices)
        inputs = f'<ol>{rows}</ol><input type="hidden" name="{name}" value="{"".join(question.choices)}">'
    elif choices:
        inputs = "".join(f'<label><input type="radio" name="{name}" value="{letter}"> {words}</label>'
                         for letter, words in choices)
    else:
        inputs = f'<label>Your answer <input name="{name}" autocomplete="off"></label>'
    return (f'<form class="question" data-judge="{html.escape(json.dumps(judge))}">{inputs}'
            f'<button>Check</button> <output></output></form>\n')


def with_fields(path, body):
    """The page of a quiz with a field before each answer. The choices of a question are in its field alone."""
    questions = Quiz(path).questions
    parts = body.split(ANSWER)
    if len(parts) != len(questions) + 1:
        raise Broken(f"{path}: {len(questions)} questions have {len(parts) - 1} answers")
    shown = []
    for place, (part, question) in enumerate(zip(parts, questions), 1):
        choices = [] if not question.choices else CHOICE.findall(part)[-len(question.choices):]
        if choices:
            start = part.rindex("<ul>")
            part = part[:start] + part[part.rindex("</ul>") + len("</ul>"):]
        solution = f"\n<p><strong>{question.solution}</strong></p>"
        shown.append(part + field(question, f"question-{place}", choices) + ANSWER + solution)
    return "".join(shown) + parts[-1]
