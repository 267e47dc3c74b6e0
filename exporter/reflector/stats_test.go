package reflector

import (
	"bytes"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRefusedRepliesAreLoggedOnceAndTheirEndOnce(t *testing.T) {
	var log bytes.Buffer
	var u unsent
	s := Stats{SendErrors: map[syscall.Errno]uint64{syscall.EPERM: 1}}
	for _, c := range []struct {
		at     time.Duration
		failed uint64
		want   string
	}{
		{time.Second, 0, ""},
		{2 * time.Second, 5, "operation not permitted"},
		{3 * time.Second, 9, ""},
		{50 * time.Second, 9, ""},
		{60 * time.Second, 10, ""},
		{2 * time.Minute, 10, ""},
		{2*time.Minute + time.Second, 10, "again"},
		{3 * time.Minute, 10, ""},
		{4 * time.Minute, 11, "replies=1 "},
	} {
		log.Reset()
		s.Results[SendFailed] = c.failed
		u.check(&s, c.at, slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("at %v with %d refused: logged %q, want %q", c.at, c.failed, got, c.want)
		}
	}
}
