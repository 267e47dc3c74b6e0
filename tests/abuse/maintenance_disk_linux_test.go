package abuse

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/agent/maintenance"
)

// A window that cannot be saved would end with the agent: it is refused, and the windows before it stay, in the file and in force.
func TestMaintenanceKeepsItsWindowsOnAFullOrReadOnlyDisk(t *testing.T) {
	if !apart(t) {
		return
	}
	for name, of := range map[string]struct {
		spoil func(*disk) func()
		want  syscall.Errno
	}{"full": {(*disk).fill, syscall.ENOSPC}, "read-only": {(*disk).seal, syscall.EROFS}} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			file := filepath.Join(d.dir, "maintenance.json")
			window := maintenance.Window{Selection: maintenance.Selection{All: true}, To: time.Now().Add(time.Hour), Reason: "new router"}
			book := maintenance.New(maintenance.Options{})
			book.Put(nil, file)
			first, err := book.Add(window)
			if err != nil {
				t.Fatal(err)
			}
			mend := of.spoil(d)
			_, added := book.Add(window)
			_, ended := book.End(first.ID)
			for err, want := range map[error]string{added: "the window is not added, since it cannot be saved: ", ended: "the window goes on, since its end cannot be saved: "} {
				if err == nil || !strings.HasPrefix(err.Error(), "maintenance: "+want) || strings.Count(err.Error(), of.want.Error()) != 1 || strings.Contains(err.Error(), "\n") {
					t.Errorf("error is %v", err)
				}
			}
			restarted := maintenance.New(maintenance.Options{})
			restarted.Put(nil, file)
			for _, b := range []*maintenance.Book{book, restarted} {
				if all := b.List(); len(all) != 1 || all[0].ID != first.ID || !all[0].Open {
					t.Errorf("the windows are %+v", all)
				}
			}
			mend()
			if left, err := os.ReadDir(d.dir); err != nil || len(left) != 1 {
				t.Errorf("the directory has %v, %v", left, err)
			}
			if second, err := book.Add(window); err != nil || second.ID == first.ID {
				t.Errorf("with space again: %+v, %v", second, err)
			}
		})
	}
}
