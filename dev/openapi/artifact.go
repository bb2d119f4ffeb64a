package main

// artifactPath is the path that serves artifacts. It is no call of a service: its answers are not JSON.
const artifactPath = "/v1/runs/{id}/tasks/{task}/artifacts/{name}"

// addArtifact adds the operation that downloads an artifact.
func addArtifact(paths object) {
	parameter := func(in, name, text string) object {
		return object{"in": in, "name": name, "required": in == "path", "description": text, "schema": object{"type": "string"}}
	}
	answer := func(text string) object {
		return object{"description": text, "content": object{"application/x-tar": object{}, "*/*": object{}}}
	}
	responses := object{
		"200": answer("The archive or the file."), "206": answer("The requested range."),
		"304": object{"description": "The client has the same bytes already."},
		"412": object{"description": "The archive or the file has another ETag."},
		"416": object{"description": "There is no such range."},
	}
	for status, name := range map[string]string{"400": "BadRequest", "404": "NotFound", "429": "TooManyRequests", "503": "Unavailable", "default": "Error"} {
		responses[status] = object{"$ref": responsePrefix + name}
	}
	paths[artifactPath] = object{"get": object{
		"tags": []any{"RunService"}, "operationId": "RunService_DownloadArtifact",
		"description": "Downloads an artifact of a task as a tar archive with one folder, or with `path` one of its files. `HEAD` and ranges work, too.",
		"parameters": []any{
			parameter("path", "id", "Run of the task."), parameter("path", "task", "Task that has left the artifact, or an instance such as \"each[3]\"."),
			parameter("path", "name", "Name of the artifact."), parameter("query", "path", "A file of the artifact."),
		},
		"responses": responses,
	}}
}
