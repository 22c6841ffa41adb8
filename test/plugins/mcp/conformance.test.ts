import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { createTestGateway } from '../../../kernel/testing/index.js'
import mcpServers from '../../../plugins/mcp/servers/index.js'
import { conformanceServer } from './conformance-server.js'

const program = join(dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')), 'dist/index.js')

/** The suite imports a function of newer Nodes, which it does not need for this. */
const loader = `
import { register } from 'node:module'
const fs = "export * from 'node:fs'; export { default } from 'node:fs'; export const globSync = () => { throw new Error('a newer Node') }"
register('data:text/javascript,' + encodeURIComponent(\`
export const resolve = (name, context, next) => /^(node:)?fs$/.test(name) && context.parentURL?.includes('/conformance/dist/')
  ? { url: 'data:text/javascript,' + encodeURIComponent(\${JSON.stringify(fs)}), shortCircuit: true }
  : next(name, context)
\`))
`

/** What a server that keeps nothing of its clients cannot do: ask them something in the middle of a call. */
const baseline = `server:
  - tools-call-sampling
  - tools-call-elicitation
  - elicitation-sep1034-defaults
  - elicitation-sep1330-enums
`

async function suite (t: Test, url: string, revision: string): Promise<void> {
  const folder = t.testdir({ 'loader.mjs': loader, 'baseline.yml': baseline })
  const words = ['server', '--url', url, '--requirements', revision, '--output-dir', join(folder, 'out')]
  if (revision === '2025-11-25') words.push('--expected-failures', join(folder, 'baseline.yml'))
  const { code, output } = await new Promise<{ code: unknown, output: string }>(resolve => {
    execFile(process.execPath, ['--import', join(folder, 'loader.mjs'), program, ...words], { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, output: stdout + stderr }))
  })
  if (code !== 0) writeFileSync(join(folder, 'output.txt'), output)
  t.equal(code, 0, output.slice(-6000))
}

t.test('the protocol\'s own conformance suite, in both eras', async t => {
  const gateway = await createTestGateway({ plugins: [mcpServers, conformanceServer] })
  t.teardown(() => gateway.close())
  const url = `${gateway.baseUrl}/mcp/conformance`
  await Promise.all(['2026-07-28', '2025-11-25'].map(revision => t.test(revision, t => suite(t, url, revision))))
})
