# The course: tasks to write and mistakes to see, quizzes and cases. course.py knows which there are. MINE is where the user's files are.
export MINE
try-% hint-% solution-% grade-% break-% capstone-%:
	@python3 common/course/course.py $@
try hint solution grade break:
	@echo 'make $@: of which stage? make $@-00$(if $(filter break,$@),-1) is the first; make progress shows what is next' >&2; exit 2
quiz-%:
	@python3 common/course/quiz.py $@ "$(ANSWERS)"
quiz: # lists them
	@python3 common/course/quiz.py
case-%: $(HOPPER_RUN) | build/have/nvcc
	@python3 common/course/case.py $@ $(if $(SOLUTION),solution)
case: # lists them
	@python3 common/course/case.py
.PHONY: try hint solution grade break quiz case

# A case with somebody's kernel, in a folder of its own: case.py puts main.cu and kernel.cuh there.
build/cases/%/main: build/cases/%/main.cu build/cases/%/kernel.cuh | $(STAND_INS)
	$Q$(NVCC) $(RUN_FLAGS) -Icommon $< $(RUN_LIBRARIES) -o $@
build/cases/%/main.ptx: build/cases/%/main.cu build/cases/%/kernel.cuh
	$Q$(NVCC) $(KERNEL_FLAGS) -std=c++17 -ptx $< -o $@
build/cases/%/main.sass: build/cases/%/main.ptx | nvdisasm
	$Q$(NVCC) -arch=sm_90a -lineinfo -cubin $< -o $(@D)/main.cubin >$(@D)/main.log 2>&1
	$Q$(NVDISASM) -c -g $(@D)/main.cubin >$@
