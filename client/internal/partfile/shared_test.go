package partfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/tests/testkit"
)

// In a directory that others can write to, a symbolic link in place of a download's file must
// not lead to another file of the user.
func TestPlantedLinksAreNotFollowed(t *testing.T) {
	for _, ending := range []string{".part", ".part.state", ".part.state.new"} {
		for how, plant := range map[string]func(victim, name string) error{"symbolic": os.Symlink, "hard": os.Link} {
			t.Run(how+ending, func(t *testing.T) {
				directory := t.TempDir()
				o := Options{Name: filepath.Join(directory, "file"), Resume: true, URL: "https://h/f"}
				victim := filepath.Join(directory, "victim")
				text := []byte("precious")
				if ending == ".part.state" {
					// This state is right except for its place.
					leave(t, o, resource)
					var err error
					if text, err = os.ReadFile(o.Name + ".part.state"); err != nil {
						t.Fatal(err)
					}
					testkit.OK(t, os.Remove(o.Name+".part.state"))
				}
				testkit.OK(t, os.WriteFile(victim, text, 0o600))
				testkit.OK(t, plant(victim, o.Name+ending))
				f, err := Create(o)
				if ending == ".part" {
					testkit.Holds(t, err != nil && strings.Contains(err.Error(), o.Name+".part is not used, because "), err)
				} else {
					testkit.OK(t, err)
					have, err := f.Begin(resource, ranges.Range{Length: resource.Size})
					testkit.Holds(t, err == nil && have == nil, have, err)
					writeAt(t, f, []byte("text"), 0)
					abort(t, f, false)
					if s, err := readState(o.Name + ".part.state"); err != nil || len(s.Written) != 1 {
						t.Errorf("the state is %+v (%v)", s, err)
					}
				}
				if got, err := os.ReadFile(victim); err != nil || !bytes.Equal(got, text) {
					t.Errorf("the file that the link leads to holds %q (%v)", got, err)
				}
			})
		}
	}
}

// Another user's file would still belong to that user after the checksum was verified.
func TestTheFilesOfAnotherUserAreNotUsed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make them")
	}
	const other = 65534
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
	leave(t, o, resource)
	testkit.OK(t, os.Chown(o.Name+".part.state", other, other))
	f, have := begin(t, o, resource)
	testkit.Holds(t, have == nil, have)
	abort(t, f, false)
	testkit.OK(t, os.WriteFile(o.Name+".part", nil, 0o666))
	testkit.OK(t, os.Chown(o.Name+".part", other, other))
	if _, err := Create(o); err == nil || !strings.Contains(err.Error(), "file.part is not used, because it belongs to another user (65534)") {
		t.Errorf("Create returns %v", err)
	}
}
