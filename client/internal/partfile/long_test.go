package partfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// A name of any length that the file system allows has a part and a state, which the next
// download finds.
func TestLongNames(t *testing.T) {
	resource := transport.Resource{Size: 4, ETag: `"1"`}
	for _, letter := range []string{"a", "ä", "€", "𝄞", "\xff"} {
		for _, bytes := range []int{128, 129, 230, 231, 240, 241, 250, 252, 255} {
			t.Run(fmt.Sprintf("%q to %d bytes", letter, bytes), func(t *testing.T) {
				directory := t.TempDir()
				base := strings.Repeat(letter, bytes/len(letter))
				base += strings.Repeat("z", bytes-len(base))
				name := filepath.Join(directory, base)
				for i, text := range []string{"ab", "cd"} {
					f := create(t, Options{Name: name, Resume: true, URL: "u"})
					have, err := f.Begin(resource, ranges.Range{})
					if got := ranges.NewSet(have...).Bytes(); err != nil || int(got) != 2*i {
						t.Fatalf("call %d begins with %d bytes, error %v", i, got, err)
					}
					writeAt(t, f, []byte(text), int64(2*i))
					if i == 0 {
						err = f.Abort(false)
					} else {
						_, err = f.Commit()
					}
					testkit.OK(t, err)
				}
				entries, err := os.ReadDir(directory)
				if text, readErr := os.ReadFile(name); err != nil || string(text) != "abcd" || len(entries) != 1 {
					t.Errorf("the file is %q (error %v), there are %v (error %v)", text, readErr, entries, err)
				}
			})
		}
	}
}

func TestNamesThatDifferAtTheirEndHavePartsOfTheirOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	long := strings.Repeat("a", 254)
	one, errOne := nameOfPart(long + "1")
	other, errOther := nameOfPart(long + "2")
	testkit.Holds(t, one != other && errOne == nil && errOther == nil, one, other, errOne, errOther)
	if short, err := nameOfPart("x/y"); short != "x/y.part" || err != nil {
		t.Errorf("x/y has the part %s, error %v", short, err)
	}
}

func TestANameThatIsTooLong(t *testing.T) {
	name := filepath.Join(t.TempDir(), strings.Repeat("ä", 128))
	_, err := Create(Options{Name: name})
	if want := "the file name has 256 bytes: allowed are 255. Give another name"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
