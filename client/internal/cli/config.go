package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/linklab/linklab/client/internal/plainfile"
)

// config is a file of settings: a YAML mapping. Its keys are the long names of a command's flags.
// A flag that may be repeated has a list. A flag on the command line replaces the setting.
type config struct {
	path string
	// lines holds the line of each flag in the file.
	lines map[string]int
}

// mostConfig limits the size of a file of settings, in bytes.
const mostConfig = 1 << 20

// notSettings are flags that a file may not set.
var notSettings = []string{"config", "help"}

// readConfig sets the flags in the file. Without a file it does nothing and returns nil.
func readConfig(path string, flags *pflag.FlagSet) (*config, error) {
	if path == "" {
		return nil, nil
	}
	text, err := plainfile.Read(path, mostConfig)
	if err != nil {
		return nil, err
	}
	c := &config{path: path, lines: map[string]int{}}
	var document, another yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return c, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := decoder.Decode(&another); err == nil {
		return nil, c.errorf(another.Line, "another document begins: one is needed")
	} else if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	mapping := document.Content[0]
	if mapping.Kind != yaml.MappingNode {
		return nil, c.errorf(mapping.Line, "NAME: VALUE lines are needed")
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		if err := c.set(flags, mapping.Content[i], mapping.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *config) set(flags *pflag.FlagSet, key, value *yaml.Node) error {
	flag := flags.Lookup(key.Value)
	if flag == nil || slices.Contains(notSettings, key.Value) {
		return c.errorf(key.Line, "there is no setting %q: allowed are %s", key.Value, strings.Join(settings(flags), ", "))
	}
	if c.lines[flag.Name] != 0 {
		return c.errorf(key.Line, "%s is set twice, first in line %d", flag.Name, c.lines[flag.Name])
	}
	values := []*yaml.Node{value}
	_, repeatable := flag.Value.(pflag.SliceValue)
	if value.Kind == yaml.SequenceNode && repeatable {
		values = value.Content
	}
	for _, v := range values {
		if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
			return c.errorf(v.Line, "%s: one value is needed%s", flag.Name, map[bool]string{true: ", or a list of values"}[repeatable])
		}
	}
	if flag.Changed {
		return nil
	}
	c.lines[flag.Name] = key.Line
	for _, v := range values {
		if err := flags.Set(flag.Name, v.Value); err != nil {
			if inner := errors.Unwrap(err); inner != nil {
				err = inner
			}
			return c.errorf(v.Line, "%s: %w", flag.Name, err)
		}
	}
	return nil
}

// settings returns the names of the flags that a file may set.
func settings(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notSettings, f.Name) {
			names = append(names, f.Name)
		}
	})
	return names
}

// locate adds the place in the file to an error about a flag that the file sets.
func (c *config) locate(err error) error {
	wrong := new(flagError)
	if c == nil || !errors.As(err, &wrong) || c.lines[wrong.flag] == 0 {
		return err
	}
	if wrong.value == "" {
		return usageError{c.errorf(c.lines[wrong.flag], "%s: %w", wrong.flag, wrong.err)}
	}
	return usageError{c.errorf(c.lines[wrong.flag], "%s: %s: %w", wrong.flag, wrong.value, wrong.err)}
}

func (c *config) errorf(line int, format string, arguments ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{c.path, line}, arguments...)...)
}
