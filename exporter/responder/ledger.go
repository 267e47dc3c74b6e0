package responder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ledger counts what each token has used today, by local time, and what its sessions
// may still use. Both are kept in a file, and so hold across restarts: what a session
// had set aside when the responder died counts as used.
type ledger struct {
	file string // empty: not kept
	now  func() time.Time
	log  *slog.Logger

	mu       sync.Mutex
	day      string
	used     map[string]int64
	reserved map[string]int64
}

// ledgerFile is its name in the state directory.
const ledgerFile = "responder-usage.json"

// ledgerContent is what the file holds.
type ledgerContent struct {
	Day string `json:"day"`
	// Bytes used or set aside by token.
	Bytes map[string]int64 `json:"bytes"`
}

// newLedger reads what was used today before. A file that makes no sense is reported
// and begun anew: only a disk's fault or a person can have made it.
func newLedger(dir string, now func() time.Time, log *slog.Logger) *ledger {
	l := &ledger{now: now, log: log, used: map[string]int64{}, reserved: map[string]int64{}}
	l.day = dayOf(now())
	if dir == "" {
		return l
	}
	l.file = filepath.Join(dir, ledgerFile)
	content, err := os.ReadFile(l.file)
	if errors.Is(err, fs.ErrNotExist) {
		return l
	}
	var c ledgerContent
	if err == nil {
		err = json.Unmarshal(content, &c)
	}
	if err != nil {
		log.Error("What tokens have used today is not known, counting begins at zero", "file", l.file, "err", err)
		return l
	}
	for name, n := range c.Bytes {
		if c.Day == l.day && n > 0 {
			l.used[name] = n
		}
	}
	return l
}

func dayOf(t time.Time) string { return t.Format(time.DateOnly) }

// turn begins a new day. What is set aside stays so: it is used in the new day.
func (l *ledger) turn() {
	if today := dayOf(l.now()); today != l.day {
		l.day = today
		clear(l.used)
	}
}

// left is what a token with this limit may still use today.
func (l *ledger) left(name string, limit int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	return max(0, limit-l.used[name]-l.reserved[name])
}

// reserve sets octets aside. With a limit (above 0) that they do not fit into, it
// returns false and what is left.
func (l *ledger) reserve(name string, limit, bytes int64) (r *reservation, left int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	if left = max(0, limit-l.used[name]-l.reserved[name]); limit > 0 && bytes > left {
		return nil, left, false
	}
	l.reserved[name] += bytes
	l.save()
	return &reservation{l: l, name: name, bytes: bytes}, left - bytes, true
}

// renewed is when the next day begins.
func (l *ledger) renewed() time.Time {
	now := l.now()
	return time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, now.Location())
}

// reservation is what one session has set aside.
type reservation struct {
	l     *ledger
	name  string
	bytes int64
}

// settle puts what was really used in the place of what was set aside.
func (r *reservation) settle(used int64) {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	if l.reserved[r.name] -= r.bytes; l.reserved[r.name] <= 0 {
		delete(l.reserved, r.name)
	}
	l.used[r.name] += used
	l.save()
}

// save writes the file; the lock is held. That it cannot is no reason to stop: the count
// in memory still holds.
func (l *ledger) save() {
	if l.file == "" {
		return
	}
	c := ledgerContent{Day: l.day, Bytes: map[string]int64{}}
	for name, n := range l.used {
		c.Bytes[name] += n
	}
	for name, n := range l.reserved {
		c.Bytes[name] += n
	}
	content, err := json.Marshal(c)
	if err == nil {
		err = replaceFile(l.file, content)
	}
	if err != nil {
		l.log.Error("What tokens have used today is not stored, a restart would forget it", "err", err)
	}
}

// replaceFile puts content in the place of a file, wholly or not at all; mode 0600.
func replaceFile(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.new")
	if err != nil {
		return fmt.Errorf("responder: %w", err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it was in the way of nothing
		return fmt.Errorf("responder: %w", err)
	}
	return nil
}
