"""The quizzes: their answers follow from the expressions, wrong answers are told apart, and the command grades."""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "common/course")
# pylint: disable=wrong-import-position
import quiz

QUIZZES = [quiz.Quiz(path) for path in sorted(glob.glob(quiz.PAGES))]


def command(number, answers="", typed="", mine="mine"):
    """The exit code of make quiz-NN, and what it prints."""
    done = subprocess.run([sys.executable, "common/course/quiz.py", f"quiz-{number}" if number else "quiz", answers],
                          input=typed, env=dict(os.environ, MINE=mine), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def right_answers(one):
    return " ".join(str(question.answer) for question in one.questions)


class Pages(unittest.TestCase):
    def test_have_questions_with_a_heading_an_answer_and_an_explanation(self):
        self.assertEqual([one.number for one in QUIZZES], [f"{number:02}" for number in range(1, len(QUIZZES) + 1)])
        self.assertGreaterEqual(len(QUIZZES), 20)
        for one in QUIZZES:
            self.assertGreaterEqual(len(one.questions), 3, one.title)
            for question in one.questions:
                with self.subTest(f"{one.number}: {question.heading}"):
                    self.assertGreater(len(question.explanation), 10)
                    self.assertRegex(question.heading, r"[?.]$")
                    self.assertNotIn("<!--", question.text + question.explanation)

    def test_tell_wrong_answers_from_the_right_one(self):
        for one in QUIZZES:
            for question in one.questions:
                with self.subTest(f"{one.number}: {question.heading}"):
                    self.assertTrue(question.is_right(question.answer))
                    for value, sentence in question.others:
                        self.assertFalse(question.is_right(value), f"{value} is right")
                        self.assertEqual(question.remark(value), sentence)
                    if question.choices and not question.is_order:
                        self.assertEqual({value for value, _ in question.others} | {question.answer}, set(question.choices))


class Orders(unittest.TestCase):
    def test_are_those_of_the_kernels_and_shuffled(self):
        """A choice whose line the kernel has no more is an error, and no question begins with its answer."""
        orders = [question for one in QUIZZES for question in one.questions if question.is_order]
        self.assertGreaterEqual(len(orders), 6)
        for question in orders:
            with self.subTest(question.heading):
                self.assertEqual(sorted(question.answer), question.choices)
                self.assertNotEqual(list(question.answer), question.choices)
                self.assertGreaterEqual(len(question.others), 2)
                for value, _ in question.others:
                    self.assertEqual(sorted(value), question.choices)
        with self.assertRaises(ValueError):
            quiz.in_order([("a", "no such line")], 'stages/06-tma/kernel.cu from "init()"')

    def test_are_read_letter_by_letter(self):
        question = next(question for one in QUIZZES for question in one.questions if question.is_order)
        self.assertEqual(question.read(" ".join(question.answer).upper()), question.answer)
        for typed in ("", question.answer[1:], question.answer + question.answer[0], "1"):
            with self.assertRaises(ValueError):
                question.read(typed)


class Numbers(unittest.TestCase):
    def test_are_read_with_commas_and_units(self):
        for text, value in (("1,024", 1024), ("4.5 KiB", 4.5), (" 12 % ", 12), ("1e3", 1000), ("-2", -2), ("", None),
                            ("many", None), ("1.2.3", None), ("0x400", 1024), ("0xAE0 ", 2784)):
            self.assertEqual(quiz.number(text), value, text)


    def test_are_shown_without_needless_digits(self):
        """And what is shown is a right answer."""
        shown = {one.number: [question.solution for question in one.questions] for one in QUIZZES}
        self.assertEqual(shown["15"], ["330", "11.4", "35.9", "3", "1"])
        self.assertEqual(shown["12"][1], "1,088")
        for one in QUIZZES:
            for question in one.questions:
                self.assertTrue(question.is_right(question.read(question.solution)), f"{one.number}: {question.solution}")


class Command(unittest.TestCase):
    def test_passes_right_answers_alone_and_remembers_it(self):
        with tempfile.TemporaryDirectory(dir="build") as mine:
            for one in QUIZZES:
                with self.subTest(one.number):
                    code, text = command(one.number, right_answers(one), mine=mine)
                    self.assertEqual(code, 0, text)
                    self.assertIn(f"{len(one.questions)} of {len(one.questions)} right", text)
                    wrong = " ".join("z" if question.choices else str(3 * question.answer + 1) for question in one.questions)
                    code, text = command(one.number, wrong, mine=mine)
                    self.assertEqual(code, 1)
                    shown = [line for line in text.splitlines() if line.startswith("The answer is ")]
                    self.assertEqual(shown, [f"The answer is {question.solution}." for question in one.questions])
            self.assertEqual(command("", mine=mine)[1].count("[x]"), len(QUIZZES))

    def test_asks_three_times_and_says_what_a_wrong_answer_forgets(self):
        with tempfile.TemporaryDirectory(dir="build") as mine:
            one = QUIZZES[0]
            first = one.questions[0]
            typed = f"{first.others[0][0]}\nmany\n" + right_answers(one).replace(" ", "\n") + "\n"
            code, text = command(one.number, typed=typed, mine=mine)
            self.assertEqual(code, 0, text)
            self.assertIn(first.others[0][1], text)
            self.assertIn("the answer is a number", text)

    def test_refuses_what_it_cannot_do_in_one_line(self):
        for number, answers, line in (("99", "", "quiz-99: there is no such quiz; there are 01 02"),
                                      ("01", "1 2", "quiz 01 has 5 questions, and ANSWERS has 2")):
            code, text = command(number, answers)
            self.assertEqual((code, text.count("\n")), (2, 1), text)
            self.assertIn(line, text)
        code, text = command("01", typed="")
        self.assertEqual(code, 2)
        self.assertIn("no answer to", text)


if __name__ == "__main__":
    unittest.main(verbosity=0)
