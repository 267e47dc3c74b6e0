package quota

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/atomicfile"
)

// While the file system stands still, a reservation with a limit is refused in time with the cause, others and
// settlements go on, and the file has all of them afterwards.
func TestFileSystemThatStandsStillHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "quota.json")
		s := New(Options{File: file})
		first, err := s.Reserve("limited", 1000, 100)
		if err != nil {
			t.Fatal(err)
		}
		stands := make(chan struct{})
		s.replace = func(name string, content []byte, mode fs.FileMode) error {
			<-stands
			return atomicfile.Replace(name, content, mode)
		}
		begin := time.Now()
		if _, err := s.Reserve("limited", 1000, 200); !errors.Is(err, errSlow) || !errors.Is(s.Saved(), errSlow) {
			t.Errorf("reserve: %v, saved: %v", err, s.Saved())
		}
		other, err := s.Reserve("unlimited", 0, 300)
		if err != nil {
			t.Errorf("reserve without a limit: %v", err)
		}
		s.Keep()
		first.Settle(50)
		if took := time.Since(begin); took > 2*saveTimeout {
			t.Errorf("took %v", took)
		}
		close(stands)
		synctest.Wait()
		if err := s.Saved(); err != nil {
			t.Errorf("saved: %v", err)
		}
		b, err := readState(file)
		if err != nil {
			t.Fatal(err)
		}
		if used := b.days[len(b.days)-1].Used; used["limited"] != 50 || used["unlimited"] != 300 {
			t.Errorf("the file has %v", used)
		}
		other.Settle(0)
	})
}
