package classic

import (
	"strings"
	"testing"
)

func TestExpr(t *testing.T) {
	r := New([]string{"delay", "late", "delay:increase1h"})
	if !r.Remove("recorded:delay") || r.Remove("recorded:delay") {
		t.Error("Remove reports the wrong things as new")
	}
	for _, c := range []struct{ name, expr, want string }{
		{"another series", `rate(sent[5m])`, `rate(sent[5m])`},
		{"classic series", `rate(delay_bucket[5m]) / rate(delay_count[5m])`, `rate(delay_bucket[5m]) / rate(delay_count[5m])`},
		{"nothing remains", `histogram_quantile(0.5, sum by (path) (rate(delay[5m])))`, ``},
		{"recorded series", `sum(sum_over_time(recorded:delay[30d]))`, ``},
		{"native or classic", `histogram_quantile(0.5, rate(delay[5m])) or histogram_quantile(0.5, rate(delay_bucket[5m]))`, `histogram_quantile(0.5, rate(delay_bucket[5m]))`},
		{"classic or native", `rate(delay_count[5m]) or histogram_count(rate(delay[5m]))`, `rate(delay_count[5m])`},
		{"or within", `(histogram_count(rate(delay[5m]))  or  rate(delay_count[5m])) + 1`, `(rate(delay_count[5m])) + 1`},
		{"chain", `a or histogram_count(delay) or b or histogram_sum(late)`, `a or b`},
		{"or binds less than and", `delay or a and b`, `a and b`},
		{"and", `a and histogram_count(delay)`, ``},
		{"unless", `a unless histogram_count(delay)`, `a`},
		{"name that ends with a variable", `sum(delay:increase$per) or sum(delay_bucket:increase$per)`, `sum(delay_bucket:increase$per)`},
		{"unless of native", `histogram_count(delay) unless a`, ``},
		{"unless before and", `a unless delay > 0 and b`, `a and b`}, // both bind equally, from the left
		{"comparison", `a > bool histogram_avg(delay) or b`, `b`},
		{"subquery", `max_over_time(histogram_quantile(0.5, rate(delay[5m]))[1h:1m]) or a`, `a`},
		{"a scalar stays", `vector(1) or histogram_count(delay)`, `vector(1)`},
		{"variables", `sum by (path) (rate(sent{path="$path",job=~"${job:regex}"}[$__rate_interval])) * $__range_s or histogram_count(increase(delay[$__range]))`, `sum by (path) (rate(sent{path="$path",job=~"${job:regex}"}[$__rate_interval])) * $__range_s`},
		{"variable name of a label", `max by (a) (sent{job="$job",$label="$a"} offset $shift) or sent{$label!="$b"} or delay`, `max by (a) (sent{job="$job",$label="$a"} offset $shift) or sent{$label!="$b"}`},
		{"offset and subquery of variables", `max_over_time(a[$__range:$__interval] offset $__range) or delay`, `max_over_time(a[$__range:$__interval] offset $__range)`},
		{"group of label_replace", `label_replace(a, "b", "$1", "c", "(.*)") or delay`, `label_replace(a, "b", "$1", "c", "(.*)")`},
		{"lines are kept", "sum(\n  a\n  or\n  histogram_count(delay)\n) > 1", "sum(\n  a\n) > 1"},
	} {
		got, err := r.Expr(c.expr)
		if err != nil || got != c.want {
			t.Errorf("%s: Expr(%q) is %q, %v, want %q", c.name, c.expr, got, err, c.want)
		}
	}
}

func TestExprRefuses(t *testing.T) {
	r := New([]string{"delay"})
	for _, c := range []struct{ expr, want string }{
		{`absent(delay)`, "absent of a native histogram has no equivalent in absent(delay)"},
		{`absent_over_time(delay[5m]) or a`, "absent_over_time of a native histogram"},
		{`sum(`, "parse error"},
	} {
		if got, err := r.Expr(c.expr); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Expr(%q) is %q, %v, want an error with %q", c.expr, got, err, c.want)
		}
	}
	if got, err := r.Expr(`absent(sent)`); err != nil || got != `absent(sent)` {
		t.Errorf("absent of another series is %q, %v", got, err)
	}
}
