package tests

import (
	"encoding/json"
	"fmt"
	"strconv"
	"syscall"
	"testing"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
	"oneway.example/tests/influx"
)

// TestInfluxDBHasWhatTelegrafWrites compares the fields that Telegraf has written to a file and to InfluxDB 1.8: the types of all
// fields are accepted, and no point replaces another.
func TestInfluxDBHasWhatTelegrafWrites(t *testing.T) {
	t.Parallel()
	store := influx.New(t, false)
	store.Start()
	a, b, nobody := int(freeport.Port(t)), int(freeport.Port(t)), int(freeport.Port(t))
	agent(t, pathsConf(b, a, nobody))
	w := telegrafWith(t, pluginBinary, fmt.Sprintf("[[inputs.oneway]]\nconfig_file = %q\ninterval = \"1s\"\n", write(t, "oneway.yml", pathsConf(a, b, nobody))),
		fmt.Sprintf("[[outputs.influxdb]]\nurls = [%q]\ndatabase = \"oneway\"\n", store.URL))
	await.That(t, "points of some seconds", func() bool {
		return len(named(w.metrics(t), "oneway_delay", "path", "there", "direction", "forward")) >= 4
	}, &w.log)
	w.end(t, syscall.SIGTERM)
	want, integers := map[string]int{}, 0
	for _, m := range w.metrics(t) {
		want[m.Name()]++
	}
	for name, n := range want {
		if rows := len(store.Query("oneway", fmt.Sprintf("SELECT * FROM %q", name))); rows != n {
			t.Errorf("%s has %d points in InfluxDB, %d in the file", name, rows, n)
		}
	}
	for _, m := range named(w.metrics(t), "oneway_packets", "path", "there", "direction", "forward") {
		sent, ok := m.GetField("packets_sent_total")
		if !ok {
			continue
		}
		rows := store.Query("oneway", fmt.Sprintf(`SELECT "packets_sent_total", "loss_ratio" FROM "oneway_packets" WHERE "path" = 'there' AND "direction" = 'forward' AND "host" = 'collector' AND time = %d`, m.Time().UnixNano()))
		if len(rows) != 1 || fmt.Sprint(rows[0][1]) != strconv.FormatInt(sent.(int64), 10) {
			t.Errorf("at %v InfluxDB has %v, the file %d sent packets", m.Time(), rows, sent)
			continue
		}
		if ratio, known := m.GetField("loss_ratio"); known != (rows[0][2] != nil) || known && number(t, rows[0][2]) != ratio {
			t.Errorf("loss ratio %v in InfluxDB, %v in the file", rows[0][2], ratio)
		}
		integers++
	}
	t.Logf("%d measurements, %d points of oneway_packets compared", len(want), integers)
	if integers < 3 {
		t.Errorf("%d points compared, want at least 3", integers)
	}
}

// number is a number of InfluxDB's reply.
func number(t *testing.T, v any) float64 {
	t.Helper()
	switch v := v.(type) {
	case float64:
		return v
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	t.Fatalf("%v is a %[1]T, want a number", v)
	return 0
}
