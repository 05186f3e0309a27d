# libcutlass_fmha.so: the driver beside this file with the headers of example 88 in the checkout that CUTLASS names. The
# flags are those of the example's CMakeLists.txt.
FMHA := build/cutlass-fmha
FMHA_EXAMPLE = $(CUTLASS)/examples/88_hopper_fmha
FMHA_FLAGS = -O3 -std=c++17 --use_fast_math --expt-relaxed-constexpr -Xcompiler -fPIC,-fvisibility=hidden -DNDEBUG \
  -gencode arch=compute_90a,code=sm_90a -I"$(CUTLASS)/include" -I"$(FMHA_EXAMPLE)" -I"$(FMHA_EXAMPLE)/collective"

build/libcutlass_fmha.so: common/baselines/cutlass-fmha/driver.cu common/baselines/cutlass-fmha/cutlass_fmha.h \
  $(FMHA)/flags | build/have/nvcc
	$(call say,NVCC $<: it takes minutes)
	$Q$(NVCC) -shared $(FMHA_FLAGS) $(FMHA_COMMIT) $< -o $@
$(FMHA)/flags: | $(FMHA)/checkout
$(FMHA)/checkout:
	@[ -f "$(FMHA_EXAMPLE)/kernel/fmha_kernel_builder.hpp" ] || { \
	  echo 'cutlass-fmha: CUTLASS=FOLDER names a checkout with examples/88_hopper_fmha' >&2; exit 2; }

ifneq ($(CUTLASS),)
FMHA_COMMIT := -DCUTLASS_COMMIT='"$(call checkout_commit,$(CUTLASS),include examples/88_hopper_fmha)"'
$(eval $(call remember,$(FMHA)/flags,$(NVCC) $(FMHA_FLAGS) $(FMHA_COMMIT)))
endif
.PHONY: $(FMHA)/checkout
