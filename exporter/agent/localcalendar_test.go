package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the host may lack a zone database

	"oneway.example/tests/await"
)

func TestCalendarIsPublishedAndAReloadChangesIt(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "holidays.txt")
	kathmandu, err := time.LoadLocation("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	write := func(days ...time.Time) {
		text := ""
		for _, d := range days {
			text += d.Format(time.DateOnly) + " a day\n"
		}
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	today := time.Now().In(kathmandu)
	write(today.AddDate(0, 0, -1), today, today.AddDate(0, 0, 1)) // the day may change during the test
	r := newRig(t, newFake(), noPaths)
	if v, found := r.value("oneway_holiday"); found {
		t.Errorf("oneway_holiday is %v without a list", v)
	}
	if v, found := r.value("oneway_utc_offset_seconds"); !found || int(v)%900 != 0 {
		t.Errorf("oneway_utc_offset_seconds is %v, %v", v, found)
	}
	r.write(noPaths + "calendar: {zone: Asia/Kathmandu, holidays_file: " + list + "}\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.wants("oneway_utc_offset_seconds", "Asia/Kathmandu", 5*3600+45*60)
	r.wants("oneway_holiday", "Asia/Kathmandu", 1)
	if v, found := r.value("oneway_holidays_end_timestamp_seconds"); !found || v <= float64(today.Unix()) {
		t.Errorf("the list ends at %v, %v; it must end after now", v, found)
	}
	if at := r.shared.local.Now(); !strings.HasSuffix(at.Format(time.RFC3339), "+05:45") {
		t.Errorf("the calendar of load tests is at %v", at)
	}
	write(today.AddDate(0, 0, -10))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.wants("oneway_holiday", "Asia/Kathmandu", 0)
	if w := r.inForce.summary.Warnings; len(w) != 1 || !strings.Contains(w[0].Error(), "calendar.holidays_file has no day after") {
		t.Errorf("warnings %v; want one of the end of the list", w)
	}
	r.write(noPaths + "calendar: {zone: Europe/Berlin}\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	await.That(t, "one zone", func() bool {
		_, berlin := r.value("oneway_utc_offset_seconds", "Europe/Berlin")
		_, before := r.value("oneway_utc_offset_seconds", "Asia/Kathmandu")
		_, holiday := r.value("oneway_holiday")
		return berlin && !before && !holiday
	})
}
