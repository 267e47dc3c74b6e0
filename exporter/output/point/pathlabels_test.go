package point

import (
	"fmt"
	"strings"
	"testing"
)

func text(tags []Tag) string {
	var all []string
	for _, t := range tags {
		all = append(all, t.Key+"="+t.Value)
	}
	return strings.Join(all, ",")
}

// TestLabelsOfAPathAreTagsOfItsPoints: all paths have the same tags.
func TestLabelsOfAPathAreTagsOfItsPoints(t *testing.T) {
	var labels PathLabels
	tagger := NewTagger([]Tag{{"site", "hq"}, {"host", "a"}}, &labels)
	of := func(tags ...Tag) string { return text(tagger.Append(nil, tags)) }
	path := func(name string) []Tag { return []Tag{{"direction", "forward"}, {"path", name}, {"probe", "stamp"}} }
	if got, want := of(path("p")...), "direction=forward,host=a,path=p,probe=stamp,site=hq"; got != want {
		t.Errorf("without labels %s, want %s", got, want)
	}
	labels.Set(map[string]map[string]string{"p": {"site": "paris", "zone": "z 1"}, "q": {"customer": "x"}, "r": nil})
	for name, want := range map[string]string{
		"p":     "customer=none,direction=forward,host=a,path=p,probe=stamp,site=paris,zone=z 1",
		"q":     "customer=x,direction=forward,host=a,path=q,probe=stamp,site=hq,zone=none",
		"r":     "customer=none,direction=forward,host=a,path=r,probe=stamp,site=hq,zone=none",
		"other": "customer=none,direction=forward,host=a,path=other,probe=stamp,site=hq,zone=none",
	} {
		if got := of(path(name)...); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if got, want := of(Tag{"interface", "eth0"}), "host=a,interface=eth0,site=hq"; got != want {
		t.Errorf("a point without a path: %s, want %s", got, want)
	}
	labels.Set(map[string]map[string]string{"p": nil})
	if got, want := of(path("p")...), "direction=forward,host=a,path=p,probe=stamp,site=hq"; got != want {
		t.Errorf("without labels again %s, want %s", got, want)
	}
}

func TestPathsThatAreNotConfiguredNeedNoMemoryEach(t *testing.T) {
	var labels PathLabels
	labels.Set(map[string]map[string]string{"p": {"site": "paris"}})
	tagger := NewTagger(nil, &labels)
	var to []Tag
	for i := range 1000 {
		to = tagger.Append(to[:0], []Tag{{"path", fmt.Sprint(i)}})
	}
	if n := len(tagger.ofPath); n > 2 || text(to) != "path=999,site=none" {
		t.Errorf("%d paths are kept, the last point has %s", n, text(to))
	}
}
