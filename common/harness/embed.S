// The kernels inside a program or a library, so that ./stage-NN is one file that runs from any directory. Assemble with
// -DSTAGE_PTX='"file.ptx"', -DSTAGE_CUBIN='"file.cubin"' or both, and with -DVISIBILITY=.protected for dlsym.
#ifndef VISIBILITY
#define VISIBILITY .hidden
#endif
  .section .rodata

#ifdef STAGE_PTX
  .global stage_ptx, stage_ptx_end
  VISIBILITY stage_ptx, stage_ptx_end
stage_ptx:
  .incbin STAGE_PTX
stage_ptx_end:
  .byte 0
#endif

#ifdef STAGE_CUBIN
  .balign 64
  .global stage_cubin, stage_cubin_end
  VISIBILITY stage_cubin, stage_cubin_end
stage_cubin:
  .incbin STAGE_CUBIN
stage_cubin_end:
  .byte 0
#endif

  .section .note.GNU-stack, "", @progbits
