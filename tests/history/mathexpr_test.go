package main

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// number is a value with labels, as Grafana's expressions have them.
type number struct {
	labels map[string]string
	v      float64
}

// mathExpr evaluates a math expression of Grafana over numbers: $name, numbers, + - * /, comparisons, && || !, abs() and parentheses. Two sets of
// numbers are joined where the labels of one contain the labels of the other.
type mathExpr struct {
	text   string
	values map[string][]number
}

func evaluate(text string, values map[string][]number) (result []number, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", text, r)
		}
	}()
	e := &mathExpr{text, values}
	result = e.binary(0)
	if e.space(); e.text != "" {
		panic("cannot read " + e.text)
	}
	return result, nil
}

func (e *mathExpr) space() { e.text = strings.TrimLeft(e.text, " ") }

// levels are the operators, the loosest first; a longer one comes before its begin.
var levels = [][]string{{"||"}, {"&&"}, {"==", "!=", "<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/"}}

func (e *mathExpr) binary(level int) []number {
	if level == len(levels) {
		return e.unary()
	}
	left := e.binary(level + 1)
	for {
		op := ""
		e.space()
		for _, one := range levels[level] {
			if strings.HasPrefix(e.text, one) {
				op = one
				break
			}
		}
		if op == "" {
			return left
		}
		e.text = e.text[len(op):]
		left = join(left, e.binary(level+1), op)
	}
}

func (e *mathExpr) unary() []number {
	e.space()
	switch {
	case strings.HasPrefix(e.text, "!"):
		e.text = e.text[1:]
		return changed(e.unary(), func(v float64) float64 { return truth(v == 0) })
	case strings.HasPrefix(e.text, "abs("):
		e.text = e.text[3:]
		return changed(e.unary(), math.Abs)
	case strings.HasPrefix(e.text, "("):
		e.text = e.text[1:]
		inner := e.binary(0)
		if e.space(); !strings.HasPrefix(e.text, ")") {
			panic("no ) at " + e.text)
		}
		e.text = e.text[1:]
		return inner
	case strings.HasPrefix(e.text, "$"):
		end := strings.IndexFunc(e.text[1:]+" ", func(c rune) bool { return !unicode.IsLetter(c) }) + 1
		name := e.text[1:end]
		e.text = e.text[end:]
		v, known := e.values[name]
		if !known {
			panic("unknown $" + name)
		}
		return v
	}
	end := strings.IndexFunc(e.text+" ", func(c rune) bool { return !unicode.IsDigit(c) && c != '.' })
	v, err := strconv.ParseFloat(e.text[:end], 64)
	if err != nil {
		panic(err)
	}
	e.text = e.text[end:]
	return []number{{nil, v}}
}

func changed(all []number, f func(float64) float64) (out []number) {
	for _, n := range all {
		out = append(out, number{n.labels, f(n.v)})
	}
	return out
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func contains(a, b map[string]string) bool {
	for k, v := range b {
		if a[k] != v {
			return false
		}
	}
	return true
}

func join(left, right []number, op string) (out []number) {
	for _, a := range left {
		for _, b := range right {
			switch {
			case contains(a.labels, b.labels):
				out = append(out, number{maps.Clone(a.labels), apply(a.v, b.v, op)})
			case contains(b.labels, a.labels):
				out = append(out, number{maps.Clone(b.labels), apply(a.v, b.v, op)})
			}
		}
	}
	return out
}

func apply(a, b float64, op string) float64 {
	switch op {
	case "||":
		return truth(a != 0 || b != 0)
	case "&&":
		return truth(a != 0 && b != 0)
	case "==":
		return truth(a == b)
	case "!=":
		return truth(a != b)
	case "<=":
		return truth(a <= b)
	case ">=":
		return truth(a >= b)
	case "<":
		return truth(a < b)
	case ">":
		return truth(a > b)
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	return a / b
}
