package option

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
)

// Described is a pointer to a struct of options that describes each of them.
type Described interface {
	// Describe returns the descriptions in the order of documents. They refer to the fields of the receiver.
	Describe() []Description
}

// Grouped is implemented by a Described with groups of options, such as sweep in sweep.step.
type Grouped interface {
	// Groups returns what each group means, by its key.
	Groups() map[string]string
}

// Description is one option, described once: its check and its default, the help of its flag, its JSON schema and its lines in
// the commented configuration come from it. Make one with Number, Optional, Numbers, Word, Text, Switch or Value.
type Description struct {
	// Key is the key of the option in its struct, such as "sweep.step". All sets it.
	Key string
	// Words are the permitted values; empty: any.
	Words []string

	groups map[string]string // of Grouped; All sets it

	doc, unit, unset, flagUnset, example, limits, placeholder string

	required func(key string) error // the error of a missing value; nil: it may be missing

	field       reflect.Value // what the pointer of the option points at
	standard    any           // the default
	low, high   any           // bounds of the value, or of each value of a list; nil: unlimited
	least, most int           // number of the values of a list; most is 0 without a limit
	fileOnly    bool
	conditional bool
	needed      bool
	check       func(key string) error
}

// describe makes the description of the option that p points at.
func describe[T any](p *T, standard T, doc string) Description {
	return Description{doc: doc, field: reflect.ValueOf(p).Elem(), standard: standard}
}

// Number describes an option between low and high, inclusive. Keys of other options stand in braces in doc: {every}.
func Number[T cmp.Ordered](p *T, standard, low, high T, doc string) Description {
	d := describe(p, standard, doc)
	d.low, d.high = low, high
	d.check = func(key string) error { return Between(key, *p, low, high) }
	return d
}

// Optional describes an option between low and high, inclusive, that has no default.
func Optional[T cmp.Ordered](p **T, low, high T, doc string) Description {
	d := describe(p, nil, doc)
	d.standard = nil // of no type
	d.low, d.high = low, high
	d.check = func(key string) error { return Between(key, **p, low, high) }
	return d
}

// Numbers describes a list of different values between low and high, inclusive.
func Numbers[T cmp.Ordered](p *[]T, standard []T, low, high T, doc string) Description {
	d := describe(p, standard, doc)
	d.low, d.high = low, high
	d.check = func(key string) error { return EachOnce(key, *p, low, high) }
	return d
}

// Word describes an option with one of these values.
func Word(p *string, standard string, words []string, doc string) Description {
	d := describe(p, standard, doc)
	d.Words = words
	d.check = func(key string) error { return OneOf(key, *p, words...) }
	return d
}

// Words describes a list of some of these values.
func Words(p *[]string, standard, words []string, doc string) Description {
	d := describe(p, standard, doc)
	d.Words = words
	d.check = func(key string) error {
		for i, v := range *p {
			if err := OneOf(fmt.Sprintf("%s[%d]", key, i), v, words...); err != nil {
				return err
			}
		}
		return nil
	}
	return d
}

// Text describes an option whose value is any text; the default is the empty one.
func Text(p *string, doc string) Description { return describe(p, "", doc) }

// Sources describes the option of the sources that a server permits; unset is what it permits without the option.
func Sources(p *[]netip.Prefix, unset string) Description {
	return Value(p, nil, "Permitted sources.").Unset(unset).WithExample(`[192.0.2.0/24, "2001:db8::/32"]`)
}

// Switch describes an option that is true or false.
func Switch(p *bool, standard bool, doc string) Description { return describe(p, standard, doc) }

// Value describes an option of another type, without bounds.
func Value[T any](p *T, standard T, doc string) Description { return describe(p, standard, doc) }

// Unset returns d with the meaning of the zero value, such as "auto-tuning". The zero value is then permitted whatever the bounds.
func (d Description) Unset(meaning string) Description {
	d.unset = meaning
	return d
}

// UnsetFlag returns d with the meaning of the zero value of its flag, where it is not the one in a configuration.
func (d Description) UnsetFlag(meaning string) Description {
	d.flagUnset = meaning
	return d
}

// In returns d with the unit of a number whose type and key do not show it, such as "packets/s".
func (d Description) In(unit string) Description {
	d.unit = unit
	return d
}

// WithExample returns d with an example, for documents that show a value where there is no default.
func (d Description) WithExample(example string) Description {
	d.example = example
	return d
}

// WithPlaceholder returns d with the word for its value in the help of a flag, such as "ADDR".
func (d Description) WithPlaceholder(word string) Description {
	d.placeholder = word
	return d
}

// Placeholder is the word for the value in the help of a flag; empty: by the type or the key.
func (d Description) Placeholder() string { return d.placeholder }

// Limited returns d with the words for its range, where the numbers alone do not say it.
func (d Description) Limited(limits string) Description {
	d.limits = limits
	return d
}

// Count returns d, a list, with limits of the number of its values.
func (d Description) Count(least, most int) Description {
	d.least, d.most = least, most
	return d
}

// Required returns d, an option that must have a value. why is that of Missing.
func (d Description) Required(why string, args ...any) Description {
	d.required = func(key string) error { return Missing(true, key, why, args...) }
	if d.field.Kind() == reflect.Slice {
		d.least = max(d.least, 1)
	}
	return d
}

// FileOnly returns d, an option of the configuration file that has no flag.
func (d Description) FileOnly() Description {
	d.fileOnly = true
	return d
}

// Conditional returns d, an option that is an error with the defaults of others: a commented configuration has it in words.
func (d Description) Conditional() Description {
	d.conditional = true
	return d
}

// Needed returns d, an option without a default that a configuration needs unless other options replace it: a commented configuration
// has it as a setting.
func (d Description) Needed() Description {
	d.needed = true
	return d
}

// IsNeeded reports whether a configuration needs the option.
func (d Description) IsNeeded() bool { return d.needed }

// IsConditional reports whether the option is an error with the defaults of others.
func (d Description) IsConditional() bool { return d.conditional }

// Checked returns d with another check of a value that is not zero.
func (d Description) Checked(check func(key string) error) Description {
	d.check = check
	return d
}

// IsFileOnly reports whether the option has no flag.
func (d Description) IsFileOnly() bool { return d.fileOnly }

// IsRequired reports whether the option must have a value.
func (d Description) IsRequired() bool { return d.required != nil }

// IsSection reports whether the value has keys of its own, which others describe, or is a list of such values.
func (d Description) IsSection() bool {
	t := d.field.Type()
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	_, text := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(t))
	return t.Kind() == reflect.Struct && !text
}

// Pointer points at the field of the option.
func (d Description) Pointer() any { return d.field.Addr().Interface() }

// Default is the default value, which is the zero value if there is a Meaning.
func (d Description) Default() any { return d.standard }

// Meaning is the meaning of the zero value, as Doc; empty: it has no special one.
func (d Description) Meaning(name func(key string) string) string { return withKeys(d.unset, name) }

// FlagMeaning is Meaning of the zero value of the option's flag.
func (d Description) FlagMeaning(name func(key string) string) string {
	return withKeys(cmp.Or(d.flagUnset, d.unset), name)
}

// Bounds are the limits of the value, or of each value of a list; nil: unlimited.
func (d Description) Bounds() (low, high any) { return d.low, d.high }

// Type is the type of the option's field.
func (d Description) Type() reflect.Type { return d.field.Type() }

// Group is what a group of the option means, such as sweep.from of sweep.from.forward; empty: there is no description.
func (d Description) Group(key string) string { return d.groups[key] }

// reference is the key of another option in a doc.
var reference = regexp.MustCompile(`\{([a-z_.]+)\}`)

// Doc is what the option means, in sentences, with the keys of other options as name shows them.
func (d Description) Doc(name func(key string) string) string { return withKeys(d.doc, name) }

func withKeys(text string, name func(key string) string) string {
	return reference.ReplaceAllStringFunc(text, func(s string) string { return name(s[1 : len(s)-1]) })
}

// Check returns the error of the current value, an *Error; nil: it is right.
func (d Description) Check() error {
	isList := d.field.Kind() == reflect.Slice
	switch zero := d.field.IsZero(); {
	case (zero || isList && d.field.Len() == 0) && d.required != nil:
		return d.required(d.Key)
	case zero && (d.unset != "" || d.field.Kind() == reflect.Pointer || d.field.Kind() == reflect.String && d.standard == ""):
		return nil
	}
	if isList {
		if n := d.field.Len(); n < d.least || d.most > 0 && n > d.most {
			return Errorf(d.Key, "has %d values; it must have %s", n, d.lengths())
		}
	}
	if d.check == nil {
		return nil
	}
	return d.check(d.Key)
}

// lengths is the permitted number of values.
func (d Description) lengths() string {
	if d.most == 0 {
		return fmt.Sprintf("at least %d", d.least)
	}
	return fmt.Sprintf("%d to %d", d.least, d.most)
}

// All are the descriptions of the options of some structs, with their keys. It panics if a field that a description refers to has
// no key.
func All(structs ...Described) (all []Description) {
	for _, s := range structs {
		keys, groups := map[place]string{}, map[string]string{}
		if grouped, ok := s.(Grouped); ok {
			groups = grouped.Groups()
		}
		for key, v := range leaves(reflect.ValueOf(s).Elem(), "") {
			keys[placeOf(v)] = key
		}
		for _, d := range s.Describe() {
			key, found := keys[placeOf(d.field)]
			if !found {
				panic(fmt.Sprintf("option: the option %q is not a field with a key of %T", d.doc, s))
			}
			d.Key, d.groups = key, groups
			all = append(all, d)
		}
	}
	return all
}

// place identifies a field: a struct and its first field have one address.
type place struct {
	address uintptr
	kind    reflect.Type
}

func placeOf(v reflect.Value) place { return place{v.Addr().Pointer(), v.Type()} }

// Undescribed are the keys of a struct that it does not describe.
func Undescribed(s Described) (keys []string) {
	all := All(s)
	for key := range leaves(reflect.ValueOf(s).Elem(), "") {
		if !slices.ContainsFunc(all, func(d Description) bool { return d.Key == key }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// leaves yields the options of a struct and of the structs in it.
func leaves(v reflect.Value, prefix string) func(yield func(string, reflect.Value) bool) {
	return func(yield func(string, reflect.Value) bool) {
		for key, field := range Fields(v) {
			if isGroup(field.Type()) {
				for inner, one := range leaves(field, prefix+key+".") {
					if !yield(inner, one) {
						return
					}
				}
			} else if !yield(prefix+key, field) {
				return
			}
		}
	}
}

// isGroup reports whether an option of this type has options itself.
func isGroup(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return false
	}
	for range Fields(reflect.New(t).Elem()) {
		return true
	}
	return false
}

// Defaults returns a struct of options with their defaults.
func Defaults[O any, P interface {
	*O
	Described
}]() (o O) {
	SetDefaults(P(&o))
	return o
}

// SetDefaults sets the options of a struct to their defaults.
func SetDefaults(s Described) {
	for _, d := range s.Describe() {
		v := reflect.ValueOf(d.standard)
		switch {
		case !v.IsValid():
			d.field.SetZero()
		case v.Kind() == reflect.Slice && !v.IsNil():
			d.field.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v)) // a flag may change it
		default:
			d.field.Set(v)
		}
	}
}

// Check returns the errors of all options of a struct, by their descriptions. The keys are looked up for errors only, since there may be
// 100,000 paths.
func Check(s Described) error {
	if !slices.ContainsFunc(s.Describe(), func(d Description) bool { return d.Check() != nil }) {
		return nil
	}
	var errs []error
	for _, d := range All(s) {
		errs = append(errs, d.Check())
	}
	return errors.Join(errs...)
}
