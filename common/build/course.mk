# The course: tasks to write and mistakes to see. course.py knows which there are. MINE is where the user's files are.
export MINE
try-% hint-% solution-% grade-% break-%:
	@python3 common/course/course.py $@
