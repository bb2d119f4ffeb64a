package web

import (
	"context"
	"maps"
	"net/url"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// fileParameter names the file of an artifact that is shown.
const fileParameter = "file"

// filePage is the number of files on a page.
const filePage = 500

// artifactView is a page of the files of an artifact.
type artifactView struct {
	*v1.Artifact
	Run, Task string
	Download  string // address of the archive
	Files     []fileRow
	// Shown is the file in the preview, or "", and Preview its address.
	Shown, Preview string
	List           string // address of the page without a preview
	First, Next    string // addresses
}

// fileRow is a file or a link of an artifact.
type fileRow struct {
	*v1.ArtifactFile
	Show, Download string // addresses; "" for a link
}

// artifactURL returns the address of the page of an artifact.
func artifactURL(run, task, name string) string {
	return taskURL(run, task) + "/artifacts/" + url.PathEscape(name)
}

// contentURL returns an address below that of an artifact, for a file or, if it is "", the archive.
func contentURL(path, what, file string) string {
	if file == "" {
		return path + "/" + what
	}
	return path + "/" + what + "?" + url.Values{fileParameter: {file}}.Encode()
}

func openArtifact(w *Web, req request) viewSource {
	return settledSource{func(ctx context.Context) (viewData, error) {
		run, task := req.values["run"], req.values["task"]
		res, err := messageOfCall(w.services.runs.ListArtifactFiles(ctx, connect.NewRequest(&v1.ListArtifactFilesRequest{
			Id: run, Task: task, Name: req.values["artifact"], PageSize: filePage, PageToken: req.query.Get("page"),
		})))
		if err != nil {
			return viewData{}, err
		}
		view := artifactView{Artifact: res.GetArtifact(), Run: run, Task: task, Download: contentURL(req.path, contentDownload, ""), Shown: req.query.Get(fileParameter)}
		if view.Shown != "" {
			view.Preview = contentURL(req.path, contentPreview, view.Shown)
		}
		list := req
		list.query = maps.Clone(req.query)
		list.query.Del(fileParameter)
		view.List = list.url()
		view.First, view.Next = pageLinks(list, res.GetNextPageToken())
		for _, file := range res.GetItems() {
			row := fileRow{ArtifactFile: file}
			if file.GetTarget() == "" {
				list.query.Set(fileParameter, file.GetPath())
				row.Show, row.Download = list.url()+"#preview", contentURL(req.path, contentDownload, file.GetPath())
			}
			view.Files = append(view.Files, row)
		}
		return viewData{view.GetName() + " of " + task + " of " + run, "artifact", view}, nil
	}}
}
