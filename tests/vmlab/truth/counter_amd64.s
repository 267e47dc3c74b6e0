#include "textflag.h"

// func read() uint64
//
// LFENCE before RDTSC: no read of the counter before the loads that precede it
// (Intel SDM volume 2B, RDTSC).
TEXT ·read(SB), NOSPLIT, $0-8
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET
