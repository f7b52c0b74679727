package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// ErrNoDocker says that no container engine answers on this machine.
var ErrNoDocker = errors.New("no container engine answers")

// HostError says that DOCKER_HOST names an engine that does not answer. Another one is not taken in its
// place: whoever names an engine wants that one. It is an ErrNoDocker.
type HostError struct {
	Host string
	Err  error
}

func (e *HostError) Error() string {
	return fmt.Sprintf("the engine that DOCKER_HOST names (%s) does not answer: %v", e.Host, e.Err)
}

func (e *HostError) Unwrap() error { return e.Err }

// Is makes a HostError an ErrNoDocker.
func (e *HostError) Is(target error) bool { return target == ErrNoDocker }

// pingLimit bounds the search for a container engine.
const pingLimit = 5 * time.Second

// Docker is the machine's container engine.
type Docker struct {
	client  *testcontainers.DockerClient
	Version string // the engine's
	API     string
}

// quietTestcontainers sets up the library: no reaper (its image cannot be had
// everywhere, and an agent ends with its oracle anyway), no talk on standard error.
var quietTestcontainers = sync.OnceValue(func() error {
	tclog.SetDefault(tclog.NewNoopLogger())
	return os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
})

// OpenDocker finds the container engine. The error wraps ErrNoDocker where none answers.
func OpenDocker(ctx context.Context) (d *Docker, err error) {
	if err := quietTestcontainers(); err != nil {
		return nil, err
	}
	defer func() {
		// The library panics where it finds no address of an engine.
		if r := recover(); r != nil {
			d, err = nil, fmt.Errorf("%w: %v", ErrNoDocker, r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	if err := askedFor(ctx); err != nil {
		return nil, err
	}
	c, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	v, err := c.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	return &Docker{client: c, Version: v.Version, API: v.APIVersion}, nil
}

// askedFor asks the engine that DOCKER_HOST names, where it names one. The library would try it and take
// the next that it finds, without a word.
func askedFor(ctx context.Context) error {
	host := os.Getenv(client.EnvOverrideHost)
	if host == "" {
		return nil
	}
	c, err := client.New(client.FromEnv)
	if err == nil {
		defer c.Close()
		_, err = c.Ping(ctx, client.PingOptions{})
	}
	if err != nil {
		return &HostError{Host: host, Err: err}
	}
	return nil
}

// Close closes the connection to the engine.
func (d *Docker) Close() error { return d.client.Close() }

// Has tells whether the engine has an image.
func (d *Docker) Has(ctx context.Context, image string) (bool, error) {
	_, err := d.client.ImageInspect(ctx, image)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the image %s: %w", image, err)
	}
	return true, nil
}

// Pull gets an image from its registry.
func (d *Docker) Pull(ctx context.Context, image string) error {
	r, err := d.client.ImagePull(ctx, image, client.ImagePullOptions{})
	if err == nil {
		err = r.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("pull %s: %w", image, err)
	}
	return nil
}

// Import makes an image out of a tar archive of its file system.
func (d *Docker) Import(ctx context.Context, image string, tar io.Reader, changes ...string) error {
	r, err := d.client.ImageImport(ctx, client.ImageImportSource{Source: tar, SourceName: "-"}, image,
		client.ImageImportOptions{Changes: changes, Message: "nginx of Debian's packages"})
	if err != nil {
		return fmt.Errorf("import %s: %w", image, err)
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("import %s: %w", image, err)
	}
	if ok, err := d.Has(ctx, image); err != nil || !ok {
		return errors.Join(fmt.Errorf("import %s: the image is not there afterwards", image), err)
	}
	return nil
}
