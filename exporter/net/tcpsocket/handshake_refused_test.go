//go:build !386

// A filter cannot read the option: package unix has it in memory on 386 (socketcall(2)).

package tcpsocket

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/tcpstamp"
)

// A sandbox that refuses TCP_TIMESTAMP leaves the handshake unknown: without its TSval it would seem to be rewritten.
func TestHandshakeIsUnknownWithoutItsTimestamp(t *testing.T) {
	from, _ := pair(t, "127.0.0.1", Options{}, Options{})
	type result struct {
		h       tcpstamp.Handshake
		err     error
		refused error
	}
	got := make(chan result)
	go func() {
		runtime.LockOSThread() // and the filter ends with the thread
		r := result{refused: refuse(unix.SYS_GETSOCKOPT, unix.IPPROTO_TCP, unix.TCP_TIMESTAMP)}
		r.h, r.err = from.Handshake()
		got <- r
	}()
	r := <-got
	if r.refused != nil {
		t.Fatal(r.refused)
	}
	if r.err == nil || r.h != (tcpstamp.Handshake{}) {
		t.Errorf("%+v, %v", r.h, r.err)
	}
}

// refuse makes a system call fail in this thread if its second and third argument have these values (seccomp(2)).
func refuse(call, second, third uint32) error {
	const load, equal, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: 0},
		{Code: equal, K: call, Jf: 5},
		{Code: load, K: 24},
		{Code: equal, K: second, Jf: 3},
		{Code: load, K: 32},
		{Code: equal, K: third, Jf: 1},
		{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: end, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: unsafe.SliceData(filter)}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
