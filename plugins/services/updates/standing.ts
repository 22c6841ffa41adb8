import { access, readFile, realpath } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { CURRENT } from './launcher/switch-file.js'

/** The program beside the trees of releases that starts the one in use, and goes back from one that does not answer. */
export const LAUNCHER = 'launch.mjs'

export const installationKinds = ['tree', 'unlaunched', 'checkout', 'npm', 'container', 'other'] as const
export type InstallationKind = typeof installationKinds[number]

/**
 * How this gateway was installed. Only a `tree` updates itself: a folder of a release beside others, with a link to the one in
 * use. The others say what to do instead.
 */
export type Standing =
  | { readonly kind: 'tree', readonly base: string, readonly tree: string, readonly advice: null }
  | { readonly kind: Exclude<InstallationKind, 'tree'>, readonly advice: string }

interface Facts {
  readonly root: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  readonly ppid: number
  /** Files that only a container has. */
  readonly marks?: readonly string[]
}

const MARKS = ['/.dockerenv', '/run/.containerenv']

/** Looks at the folders around the package. Never rejects. */
export async function standingOf ({ root, env, pid, ppid, marks = MARKS }: Facts): Promise<Standing> {
  const base = dirname(root)
  const link = await realpath(join(base, CURRENT)).catch(() => null)
  if (link === await realpath(root).catch(() => root) && await exists(join(base, LAUNCHER))) {
    // children of a gateway have its environment and are no gateway of this tree
    if ([pid, ppid].map(String).includes(env.SVC_LAUNCHED ?? '')) return { kind: 'tree', base, tree: basename(link), advice: null }
    return { kind: 'unlaunched', advice: `start it with ${join(base, LAUNCHER)} in place of svc, as the unit of \`svc service install\` does: it takes new releases up, and goes back from one that fails` }
  }
  if (root.split(sep).includes('node_modules')) return { kind: 'npm', advice: 'npm installed it: npm install -g svc-gateway@latest, and start it again' }
  if (await exists(join(root, '.git')) || await exists(join(root, 'tsconfig.json'))) {
    return { kind: 'checkout', advice: `it is a checkout: git pull && npm ci in ${root}, and start it again` }
  }
  if (env.KUBERNETES_SERVICE_HOST !== undefined || (await Promise.all(marks.map(exists))).includes(true)) {
    return { kind: 'container', advice: 'it runs in a container: pull the newer image, and recreate the container with the same volumes' }
  }
  return { kind: 'other', advice: 'unpack the archive of a release as the README says, and start that' }
}

/** The version in the package.json of a tree; null for what is none. */
export async function treeVersion (folder: string): Promise<string | null> {
  try {
    const { name, version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { name?: unknown, version?: unknown }
    return name === 'svc-gateway' && typeof version === 'string' ? version : null
  } catch {
    return null
  }
}

function exists (path: string): Promise<boolean> {
  return access(path).then(() => true, () => false)
}
