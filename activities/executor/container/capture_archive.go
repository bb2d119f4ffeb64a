package container

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"github.com/docker/docker/api/types/image"
)

// imageConfig is the configuration of an image in the form that docker save writes. Its digest is the image's id.
type imageConfig struct {
	Created      time.Time      `json:"created"`
	Architecture string         `json:"architecture"`
	Variant      string         `json:"variant,omitempty"`
	OS           string         `json:"os"`
	Config       any            `json:"config,omitempty"`
	RootFS       imageLayers    `json:"rootfs"`
	History      []imageHistory `json:"history"`
}

type imageLayers struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type imageHistory struct {
	Created time.Time `json:"created"`
	Comment string    `json:"comment"`
}

// imageManifest is an entry in the manifest.json of an archive.
type imageManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// configOf returns the configuration of an image without its layers.
func configOf(found image.InspectResponse) imageConfig {
	return imageConfig{Architecture: found.Architecture, Variant: found.Variant, OS: found.Os, Config: found.Config}
}

// layerFile holds a layer of an image in an unlinked file, so that the file disappears with the process.
type layerFile struct {
	file *os.File
	sum  hash.Hash
	size int64
}

func newLayerFile(dir string) (*layerFile, error) {
	file, err := os.CreateTemp(dir, "switchyard-layer-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close() // the caller needs the error of Remove
		return nil, err
	}
	return &layerFile{file: file, sum: sha256.New()}, nil
}

// fill copies a tar archive into the layer and records its size and digest.
func (l *layerFile) fill(files io.Reader) (err error) {
	l.size, err = io.Copy(io.MultiWriter(l.file, l.sum), files)
	return err
}

func (l *layerFile) diffID() string { return "sha256:" + hex.EncodeToString(l.sum.Sum(nil)) }

func (l *layerFile) close() { _ = l.file.Close() } // the content is no longer needed

// writeImage writes an archive for docker load with an image of one layer, and returns the id of the image.
func writeImage(ctx context.Context, to io.Writer, config imageConfig, layer *layerFile) (id string, err error) {
	config.Created = time.Now().UTC()
	config.RootFS = imageLayers{Type: "layers", DiffIDs: []string{layer.diffID()}}
	config.History = []imageHistory{{Created: config.Created, Comment: "files of a container, as an environment"}}
	data, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(data))
	layerName := digest + "/layer.tar"
	manifest, err := json.Marshal([]imageManifest{{Config: digest + ".json", Layers: []string{layerName}}})
	if err != nil {
		return "", err
	}
	if _, err := layer.file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	w := tar.NewWriter(to)
	write := func(name string, size int64, from io.Reader) {
		if err != nil {
			return
		}
		if err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: config.Created.Truncate(time.Second)}); err == nil {
			_, err = io.Copy(w, &cancellable{ctx, from})
		}
	}
	write(digest+".json", int64(len(data)), bytes.NewReader(data))
	write("manifest.json", int64(len(manifest)), bytes.NewReader(manifest))
	write(layerName, layer.size, layer.file)
	if err != nil {
		return "", err
	}
	return "sha256:" + digest, w.Close()
}

// cancellable is a reader that fails once its context has ended.
type cancellable struct {
	ctx context.Context
	io.Reader
}

// Read reads until the context ends, then returns its cause.
func (c *cancellable) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.Reader.Read(p)
}
