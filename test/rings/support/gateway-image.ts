import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { bundledProgram } from '../../bundle/fresh.js'
import { root } from '../../repository.js'

export const GATEWAY_IMAGE = 'svc-test/gateway:latest'

const run = promisify(execFile)

/** Makes the image of what was built, and resolves with what that said. It stays, for the next ring. */
export async function makeGatewayImage (env: NodeJS.ProcessEnv): Promise<string> {
  return (await run(process.execPath, [join(root, 'dist/test/bundle/image.js'), '--tag', GATEWAY_IMAGE], { env })).stdout
}

/** Takes the one that another ring made, unless something was built since. */
export async function ensureGatewayImage (env: NodeJS.ProcessEnv): Promise<void> {
  const made = await run('docker', ['image', 'inspect', '--format', '{{.Metadata.LastTagTime.Format "2006-01-02T15:04:05Z07:00"}}', GATEWAY_IMAGE], { env })
    .then(({ stdout }) => Date.parse(stdout.trim()), () => NaN)
  if (!(made > statSync(bundledProgram).mtimeMs)) await makeGatewayImage(env)
}
