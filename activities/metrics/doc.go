// Package metrics has the figures of a process for Prometheus: of placement and
// of what every node has on the process that owns the queue, of attempts on a node, and
// the Temporal SDK's own on both. It knows the libraries of OpenTelemetry and
// Prometheus and nothing of Switchyard, so that every part may use it.
//
// # Names
//
// What a scrape shows is named here and nowhere else; dev/grafana draws it and
// dev/deploy/alerts.yaml watches it, and tests hold them together. A label "node"
// is a node's name, "type" the type of a task, "state" a word of the data model.
//
//	switchyard_build_info{version,goversion}            1
//	switchyard_runs_total{workflow,state}               runs that ended, by how
//	switchyard_tasks_total{type,state}                  their tasks and instances
//	switchyard_task_attempts_total{type,state}          attempts that ended on nodes, by how
//	switchyard_task_queue_seconds{type}                 from ready to placed
//	switchyard_task_run_seconds{type,state}             from the start of the process to its end
//	switchyard_placement_tasks{state}                   tasks that wait, or hold a place
//	switchyard_placement_decisions_total{type}          tasks that were given to a node
//	switchyard_placement_reassignments_total{reason}    dispatches that ended without an attempt, or lost with a node
//	switchyard_placement_owner                          1 while this process owns the queue
//	switchyard_nodes{state}                             nodes of the fleet
//	switchyard_node_heartbeat_age_seconds{node}         age of the newest heartbeat
//	switchyard_node_slots{node,kind}                    total and used
//	switchyard_node_cores{node,kind}                    total and reserved
//	switchyard_node_memory_bytes{node,kind}             total and reserved
//	switchyard_node_gpus{node,kind}                     total and reserved
//	switchyard_worker_claims_total{node}                attempts that a node took up
//	switchyard_worker_claim_contention_total{node}      attempts that it handed back, as another held or wanted the place
//	switchyard_worker_lease_expirations_total{node,outcome}
//	                                                    attempts whose lease was over: "ended" by their node, which counts
//	                                                    them itself, or "lost" with it, which the owner of the queue counts
//	switchyard_agent_turns_total                        replies of models to agents on this node
//	switchyard_agent_tool_calls_total{tool}             calls of tools by them; beyond 200 tools, "(other)"
//	switchyard_agent_tokens_total{model,direction}      tokens: "input" without those of the cache, "output",
//	                                                    "cache_read" and "cache_write"; beyond 50 models, "(other)"
//	switchyard_agent_cost_usd_total{model}              what they have cost, by the prices of the node
//	switchyard_node_suspicions_total{node}              dispatches that it did not pick up, or did not start
//	temporal_*                                          the SDK's
//
// Times are in seconds. All methods are safe for concurrent use, and a nil
// *Metrics takes everything and keeps nothing.
package metrics
