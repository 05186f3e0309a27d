# libflash_attention_3.so: the driver beside this file and, from the checkout that FLASH_ATTENTION names, the six files
# that instantiate the kernels for head dimensions 64 and 128: forward for fp16 and e4m3, backward for fp16. CUTLASS names
# the other checkout. The flags are those of FlashAttention's hopper/setup.py, without the features that are not timed here.
FA3 := build/flash-attention-3
FA3_DRIVER := common/baselines/flash-attention-3
FA3_KERNELS := $(foreach d,64 128,$(foreach type,fwd_hdim$(d)_fp16 fwd_hdim$(d)_e4m3 bwd_hdim$(d)_fp16,\
  $(FA3)/flash_$(type)_sm90.o))
FA3_FLAGS := -O3 -std=c++17 --use_fast_math --expt-relaxed-constexpr -Xcompiler -fPIC,-fvisibility=hidden \
  -gencode arch=compute_90a,code=sm_90a -DNDEBUG -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED \
  -DCUTLASS_ENABLE_GDC_FOR_SM90 \
  $(foreach feature,LOCAL SOFTCAP PAGEDKV SPLIT APPENDKV PACKGQA VARLEN,-DFLASHATTENTION_DISABLE_$(feature)) \
  -I"$(FLASH_ATTENTION)/hopper" -I"$(CUTLASS)/include"

build/libflash_attention_3.so: $(FA3)/driver.o $(FA3_KERNELS)
	$(call say,LD $@)
	$Q$(NVCC) -shared $^ -o $@
$(FA3)/driver.o: $(FA3_DRIVER)/driver.cu $(FA3_DRIVER)/flash_attention_3.h $(FA3)/flags | build/have/nvcc
	$(call say,NVCC $<)
	$Q$(NVCC) $(FA3_FLAGS) $(FA3_COMMITS) -c $< -o $@
$(FA3_KERNELS): $(FA3)/%.o: $(FA3)/flags | build/have/nvcc
	$(call say,NVCC $*.cu: it takes minutes and 5 GB of memory)
	$Q$(NVCC) $(FA3_FLAGS) -c "$(FLASH_ATTENTION)/hopper/instantiations/$*.cu" -o $@
$(FA3)/flags: | $(FA3)/checkouts
$(FA3)/checkouts:
	@[ -f "$(FLASH_ATTENTION)/hopper/flash.h" ] && [ -f "$(CUTLASS)/include/cute/tensor.hpp" ] || { \
	  echo 'flash-attention-3: FLASH_ATTENTION=FOLDER and CUTLASS=FOLDER name checkouts of the two' >&2; exit 2; }

ifneq ($(FLASH_ATTENTION),)
FA3_COMMITS := -DFLASH_ATTENTION_COMMIT='"$(call checkout_commit,$(FLASH_ATTENTION),hopper)"' \
  -DCUTLASS_COMMIT='"$(call checkout_commit,$(CUTLASS),include)"'
$(eval $(call remember,$(FA3)/flags,$(NVCC) $(FA3_FLAGS) $(FA3_COMMITS)))
endif
.PHONY: $(FA3)/checkouts

# Decode: a library of its own, with the features that it needs: split keys, pages, packed heads and lengths.
FA3_DECODE := $(FA3)/decode
FA3_DECODE_KERNELS := $(FA3_DECODE)/flash_fwd_combine.o $(FA3_DECODE)/flash_prepare_scheduler.o \
  $(foreach d,64 128,$(foreach kind,bf16 bf16_packgqa bf16_split bf16_paged bf16_paged_split,\
  $(FA3_DECODE)/instantiations/flash_fwd_hdim$(d)_$(kind)_sm90.o))
FA3_DECODE_FLAGS = $(filter-out $(foreach feature,PAGEDKV SPLIT PACKGQA VARLEN,-DFLASHATTENTION_DISABLE_$(feature)),\
  $(FA3_FLAGS)) -DFLASHATTENTION_DISABLE_CLUSTER# which a single tile of queries does not use

build/libflash_attention_3_decode.so: $(FA3_DECODE)/driver.o $(FA3_DECODE_KERNELS)
	$(call say,LD $@)
	$Q$(NVCC) -shared $^ -o $@
$(FA3_DECODE)/driver.o: $(FA3_DRIVER)/decode_driver.cu $(FA3_DRIVER)/flash_attention_3_decode.h $(FA3)/flags | build/have/nvcc
	$(call say,NVCC $<)
	@mkdir -p $(@D)
	$Q$(NVCC) $(FA3_DECODE_FLAGS) $(FA3_COMMITS) -c $< -o $@
$(FA3_DECODE_KERNELS): $(FA3_DECODE)/%.o: $(FA3)/flags | build/have/nvcc
	$(call say,NVCC $*.cu: it takes minutes and 5 GB of memory)
	@mkdir -p $(@D)
	$Q$(NVCC) $(FA3_DECODE_FLAGS) -c "$(FLASH_ATTENTION)/hopper/$*.cu" -o $@
