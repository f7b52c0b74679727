package reference

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nginxoracle/oracle/engine"
)

const (
	pullLimit = 90 * time.Second
	// After a pull that failed, none is tried for this long: where no registry can be reached, a
	// try costs seconds of every run.
	pullAgain = time.Hour
)

// registryImage is the name of the image that nginx.org publishes.
func registryImage(version string) string { return "nginx:" + version }

// pull gets an image from its registry, unless it is here.
func pull(ctx context.Context, d *engine.Docker, cache, image string, progress func(string)) error {
	ok, err := d.Has(ctx, image)
	if err != nil || ok {
		return err
	}
	if text := pullNote(cache, image); text != "" {
		return errors.New(text)
	}
	progress("pulling " + image)
	ctx, cancel := context.WithTimeout(ctx, pullLimit)
	defer cancel()
	if err := d.Pull(ctx, image); err != nil {
		// The note only spares the next run a pull: where it cannot be written, that is tried again.
		_ = os.WriteFile(notePath(cache, image), []byte(err.Error()), 0o644)
		return err
	}
	return nil
}

func notePath(cache, image string) string {
	return filepath.Join(cache, "no-image-"+strings.ReplaceAll(image, ":", "-"))
}

// pullNote tells how the last pull failed, if that was not long ago.
func pullNote(cache, image string) string {
	note := notePath(cache, image)
	st, err := os.Stat(note)
	if err != nil || time.Since(st.ModTime()) >= pullAgain {
		return ""
	}
	text, err := os.ReadFile(note)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s; a pull is not tried again before %s (to try now: rm %s)",
		text, st.ModTime().Add(pullAgain).Format(time.TimeOnly), note)
}

// packagesImage is the image made of Debian's packages: found, or built in seconds.
func packagesImage(ctx context.Context, d *engine.Docker, cache string, r release, progress func(string)) (string, error) {
	t, err := fetch(ctx, cache, r, progress)
	if err != nil {
		return "", err
	}
	image := t.image()
	ok, err := d.Has(ctx, image)
	if err != nil || ok {
		return image, err
	}
	progress("building the image " + image + " from the packages")
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(writeRoot(pw, t.root)) }()
	defer pr.Close()
	return image, d.Import(ctx, image, pr,
		`LABEL nginx-oracle.packages="`+strings.Join(t.packages, " ")+`"`, `CMD ["/usr/sbin/nginx", "-g", "daemon off;"]`)
}

// image names the image of exactly these packages.
func (t tree) image() string {
	sum := sha256.Sum256([]byte(strings.Join(t.packages, "\n")))
	return "nginx-oracle/nginx:" + t.version + "-" + hex.EncodeToString(sum[:4])
}

// BuildImage builds the image of nginx VERSION out of Debian's packages, unless
// it is there, and names it.
func BuildImage(ctx context.Context, version string, progress func(string)) (string, error) {
	r, err := releaseOf(version)
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	d, err := engine.OpenDocker(ctx)
	if err != nil {
		return "", err
	}
	defer d.Close()
	return packagesImage(ctx, d, cache, r, progress)
}

// writeRoot writes a tree of extracted packages as a tar archive, with the links
// and folders that a base system would have brought.
func writeRoot(w io.Writer, root string) error {
	tw := tar.NewWriter(w)
	for _, dir := range []string{"cell", "dev", "oracle", "proc", "run", "sys", "tmp", "var"} {
		if isThere(filepath.Join(root, dir)) {
			continue
		}
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	for _, name := range []string{"bin", "lib", "lib64", "sbin"} {
		if isThere(filepath.Join(root, name)) || !isThere(filepath.Join(root, "usr", name)) {
			continue
		}
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "usr/" + name, Mode: 0o777}); err != nil {
			return err
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		return writeEntry(tw, root, path, d)
	})
	if err != nil {
		return fmt.Errorf("pack %s: %w", root, err)
	}
	return tw.Close()
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func writeEntry(tw *tar.Writer, root, path string, d fs.DirEntry) error {
	st, err := d.Info()
	if err != nil {
		return err
	}
	link := ""
	if st.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(st, link)
	if err != nil {
		return err
	}
	if h.Name, err = filepath.Rel(root, path); err != nil {
		return err
	}
	if st.IsDir() {
		h.Name += "/"
	}
	h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""
	if err := tw.WriteHeader(h); err != nil || !st.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(tw, f)
	return err
}
