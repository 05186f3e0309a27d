// The kernels inside the program, so that ./stage-NN is one file that runs from any directory.
// Assemble with -DSTAGE_PTX='"file.ptx"' -DSTAGE_CUBIN='"file.cubin"'.
  .hidden stage_ptx, stage_ptx_end, stage_cubin, stage_cubin_end
  .section .rodata

  .global stage_ptx, stage_ptx_end
stage_ptx:
  .incbin STAGE_PTX
stage_ptx_end:
  .byte 0

  .balign 64
  .global stage_cubin, stage_cubin_end
stage_cubin:
  .incbin STAGE_CUBIN
stage_cubin_end:
  .byte 0

  .section .note.GNU-stack, "", @progbits
