// Judges the answers of a quiz, as common/course/quiz.py does: three tries, then the explanation unfolds.
"use strict";

const TRIES = 3;

// The number that somebody has typed, with or without commas and a unit, or as 0x400; NaN if it is none.
function numberOf(text) {
  if (/^0x[0-9a-f]+$/i.test(text.trim())) return Number(text);
  const match = text.trim().match(/^([-+]?[\d.,]*\d\.?(?:e[-+]?\d+)?)\s*[a-zA-Zµ\/%]*$/);
  return match ? Number(match[1].replaceAll(",", "")) : NaN;
}

function isNear(given, value, within) {
  if (typeof value == "string") return given == value;
  return Math.abs(given - value) <= within * Math.abs(value) * (1 + 1e-9);
}

function judge(form) {
  const {answer, within, others} = JSON.parse(form.dataset.judge);
  const typed = new FormData(form).values().next().value ?? "", isChoice = typeof answer == "string";
  const given = isChoice ? typed : numberOf(typed);
  if (isChoice ? !given : Number.isNaN(given)) return {remark: isChoice ? "Choose one of these." : "The answer is a number."};
  if (isNear(given, answer, within)) return {isRight: true, remark: "Right."};
  const other = others.find(([value]) => isNear(given, value, within));
  return {isWrong: true, remark: `Not ${isChoice && typed.length > 1 ? "yet" : typed.trim()}. ${other?.[1] ?? ""}`};
}

// Lines to put in order: each has two buttons, and a hidden field has the letters as they stand.
function letMove(form) {
  const list = form.querySelector("ol"), field = form.querySelector("[type=hidden]");
  list.addEventListener("click", ({target}) => {
    const row = target.closest("li"), next = target.className == "up" ? row.previousElementSibling : row.nextElementSibling?.nextElementSibling;
    if (!target.matches("button") || (next === null && target.className == "up") || next === undefined) return;
    list.insertBefore(row, next);
    field.value = [...list.children].map(each => each.dataset.letter).join("");
    target.focus();
  });
  for (const button of list.querySelectorAll("button")) {
    button.setAttribute("aria-label", `${button.className}: ${button.parentElement.querySelector("span").textContent}`);
  }
}

for (const form of document.querySelectorAll("form.question")) {
  let left = TRIES;
  if (form.querySelector("ol")) letMove(form);
  form.addEventListener("submit", event => {
    event.preventDefault();
    const {isRight, isWrong, remark} = judge(form);
    const output = form.querySelector("output");
    output.textContent = remark;
    output.className = isRight ? "right" : "wrong";
    if (isWrong) left--;
    if (isRight || !left) form.nextElementSibling.open = true;
  });
}
