// Package stamp reads and writes the packets of STAMP, the Simple Two-Way
// Active Measurement Protocol (RFC 8762), with its optional extensions (RFC
// 8972). All integers are big-endian. It knows octets and secrets: no sockets,
// no clocks.
//
// Question, unauthenticated (44 octets) and authenticated (112):
//
//	0-3 Sequence Number  4-11 T1  12-13 Error Estimate  14-15 SSID  16-43 zero
//	0-3 Sequence Number  4-15 zero  16-23 T1  24-25 Error Estimate  26-27 SSID
//	28-95 zero  96-111 HMAC
//
// Answer, unauthenticated (44 octets) and authenticated (112):
//
//	0-3 Sequence Number  4-11 T3  12-13 Error Estimate  14-15 SSID  16-23 T2
//	24-27 Sender Sequence Number  28-35 Sender T1  36-37 Sender Error Estimate
//	38-39 zero  40 Sender TTL  41-43 zero
//	0-3 Sequence Number  4-15 zero  16-23 T3  24-25 Error Estimate  26-27 SSID
//	28-31 zero  32-39 T2  40-47 zero  48-51 Sender Sequence Number  52-63 zero
//	64-71 Sender T1  72-73 Sender Error Estimate  74-79 zero  80 Sender TTL
//	81-95 zero  96-111 HMAC
//
// TLVs follow the base packet: Flags (1) Type (1) Length (2) Value. The HMAC of a
// base packet is HMAC-SHA-256 over octets 0..95, truncated to 16; that of the
// HMAC TLV, which comes last, is over the Sequence Number and the TLVs before it.
//
// Type 251, of the experimental range (a private-use type would have to begin
// with an enterprise number, RFC 8972 section 4), is our own Receipt:
//
//	0-1  "OW"  2 version 1 (0xf0), host block (0x08), bitmap words (0x07)
//	3    0x80 Query  0x40 Finish  0x20 Filled  0x18 origin of T2  0x07 clock
//	4-7  CRC-32C of the whole payload (this field and both HMACs taken as zero)
//	8-11 Run   12-15 Epoch
//	16   Next, Base, Received, Lost, Duplicated, Reordered, Late, Corrupted, Bursts
//	52   Tx   56-67 when the last three answers left   68-71 and were held (Left)
//	72   bitmap, words x 8
//	     host block, if there is one: socket drops (4), zero and ignored (4)
//
// In a question, Next is the number of test packets sent so far, Base a token of
// the sender's kernel, Received says by bits what the sender understands (0x1: host
// blocks), and Tx is the sender's waiting time in milliseconds; the rest
// of the counts is zero, and there is no host block. A reflector of before the host block
// ignores Received; a sender of before it does not ask, and gets none. The
// reflector writes the counts of its receive window (package seqwin), how many
// answers it has sent, and stamps of those. A Query is no test packet: it is
// answered and counted nowhere. With Finish it says that Next packets have been
// sent and waited for.
package stamp
