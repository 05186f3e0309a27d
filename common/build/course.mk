# The course: tasks to write and mistakes to see. course.py knows which there are. MINE is where the user's files are.
export MINE
try-% hint-% solution-% grade-% break-% capstone-%:
	@python3 common/course/course.py $@
try hint solution grade break:
	@echo 'make $@: of which stage? make $@-00$(if $(filter break,$@),-1) is the first; make progress shows what is next' >&2; exit 2
quiz-%:
	@python3 common/course/quiz.py $@ "$(ANSWERS)"
quiz: # lists them
	@python3 common/course/quiz.py
.PHONY: try hint solution grade break quiz
