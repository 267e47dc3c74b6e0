package tstamp

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFailedSendsAreCountedByABoundedSetOfReasons(t *testing.T) {
	byErrno := map[syscall.Errno]uint64{syscall.EPERM: 1, syscall.EMSGSIZE: 2}
	want := map[string]uint64{"not_permitted": 1, "packet_too_large": 2}
	for errno := range syscall.Errno(133) {
		if _, listed := sendReasons()[errno]; !listed {
			byErrno[errno] = 1
			want[otherFailure]++
		}
	}
	if diff := cmp.Diff(want, CountByReason(byErrno)); diff != "" {
		t.Errorf("failed sends by reason (-want +got):\n%s", diff)
	}
}
