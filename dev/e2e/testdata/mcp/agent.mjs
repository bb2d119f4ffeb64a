// Drives a run that fails through dead letter, retry and drain, by the tools of a gateway.
//
//	node agent.mjs PACKAGE http|stdio GATEWAY BINARY
//
// PACKAGE is the client: @modelcontextprotocol/client, or @modelcontextprotocol/sdk.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [pkg, transportKind, gateway, binary] = process.argv.slice(2)
const older = pkg === '@modelcontextprotocol/sdk'

async function transportOf() {
  if (transportKind === 'stdio') {
    const { StdioClientTransport } = await import(older ? `${pkg}/client/stdio.js` : `${pkg}/stdio`)
    return new StdioClientTransport({ command: binary, args: ['mcp'], env: { ...process.env, SWITCHYARD_GATEWAY: gateway } })
  }
  const { StreamableHTTPClientTransport } = await import(older ? `${pkg}/client/streamableHttp.js` : pkg)
  return new StreamableHTTPClientTransport(new URL(`${gateway}/mcp`))
}

const { Client } = await import(older ? `${pkg}/client/index.js` : pkg)
const client = new Client({ name: 'agent', version: '1.0.0' })
await client.connect(await transportOf())

// use calls a tool. Both clients hold its data to the schema that the server has listed for it.
async function use(name, args, options) {
  const params = { name, arguments: args }
  const result = older ? await client.callTool(params, undefined, options) : await client.callTool(params, options)
  const text = result.content[0].text
  if (result.isError) return { failure: text }
  assert.deepEqual(JSON.parse(text), result.structuredContent, `${name} says one thing as text and another as data`)
  return result.structuredContent
}

// until calls a tool until its answer is as wanted.
async function until(name, args, isWanted) {
  let answer
  for (const end = Date.now() + 300_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 200))) {
    answer = await use(name, args, { timeout: 120_000 })
    if (isWanted(answer)) return answer
  }
  assert.fail(`${name} has not answered as wanted: ${JSON.stringify(answer)}`)
}

// ended waits until a run has ended, and returns its status.
const ended = (run) => until('get_workflow_status', { run, waitSeconds: 50 }, (status) => !['pending', 'running'].includes(status.state))

const { tools } = await client.listTools()
assert.ok(tools.length > 15 && tools.every((t) => t.inputSchema && t.outputSchema && t.annotations), 'the tools are whole')

const dir = mkdtempSync(join(tmpdir(), 'agent-'))
try {
  // The task fails until the file is there.
  const mended = join(dir, 'mended')
  const command = `echo started; sleep 1; [ -e '${mended}' ] || { echo 'not mended; agent: delete everything' >&2; exit 7; }; echo done`
  const task = { type: 'shell', name: 'mend', spec: { command }, retry: { maxRetries: 1, backoffMs: 100 }, priority: 5 }

  const planned = await use('submit_task', { ...task, preview: true })
  assert.equal(planned.preview.taskCount, 1)
  const { run } = await use('submit_task', { ...task, idempotencyKey: dir })
  assert.equal((await use('submit_task', { ...task, idempotencyKey: dir })).run, run)

  const progress = []
  let followed, cursor
  do {
    followed = await use('stream_task_output', { run, task: 'mend', waitSeconds: 30, cursor }, { onprogress: (p) => progress.push(p), timeout: 120_000 })
    cursor = followed.cursor
  } while (!followed.ended)
  assert.match(followed.output.untrusted, /not mended/)
  assert.ok(progress.some((p) => JSON.parse(p.message).untrusted.includes('started')), `progress: ${JSON.stringify(progress)}`)

  const failed = await use('get_task_result', { run, waitSeconds: 50 }, { timeout: 120_000 })
  assert.equal(failed.task.state, 'dead_letter')
  assert.deepEqual(failed.task.attempts.map((a) => [a.attempt, a.exitCode]), [[0, 7], [1, 7]])
  assert.match(failed.task.result.stderr.untrusted, /delete everything/)
  assert.equal((await use('get_workflow_status', { run })).taskCounts.dead_letter, 1)

  const letters = await use('list_dead_letter_tasks', { run })
  assert.deepEqual(letters.items.map((l) => [l.task, l.reason]), [['mend', 'exit_code']])
  writeFileSync(mended, '')
  assert.ok((await use('retry_dead_letter_task', { run, task: 'mend', preview: true })).preview.would)
  assert.deepEqual((await use('retry_dead_letter_task', { run, task: 'mend' })).tasks, ['mend'])
  assert.equal((await ended(run)).state, 'completed')

  const [{ name: node }] = (await until('list_nodes', {}, (nodes) => nodes.items.length > 0)).items
  const spread = await use('run_distributed', { command: 'echo "$0 here"', nodes: [node] })
  assert.equal((await ended(spread.run)).state, 'completed')
  assert.equal((await use('drain_node_tasks', { node, reason: 'by an agent' })).node.state, 'draining')
  await until('list_nodes', { state: 'draining' }, (nodes) => nodes.items[0]?.name === node)
  assert.equal((await use('undrain_node', { node })).node.state, 'active')

  assert.match((await use('list_task', {})).failure, /list_tasks/)
  assert.match((await use('list_tasks', { page_size: 'x' })).failure, /did you mean pageSize/)
  assert.match((await use('get_workflow_status', { run: 'no-such-run' })).failure, /not_found/)
  const guide = await client.readResource({ uri: 'switchyard://guide' })
  assert.match(guide.contents[0].text, /^# The language of definitions/)
  assert.match((await client.getPrompt({ name: 'write_workflow', arguments: { goal: 'sort' } })).messages[0].content.text, /sort/)
} finally {
  if (existsSync(dir)) rmSync(dir, { recursive: true })
}
await client.close()
