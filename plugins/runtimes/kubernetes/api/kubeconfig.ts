import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { messageOf } from 'svc-gateway/plugin'
import { z } from 'zod'
import { kubernetesError } from '../errors.js'
import type { ClusterSettings } from '../settings.js'
import type { Credentials } from './credentials.js'
import type { ExecCommand } from './exec-command.js'

/** A cluster and how to get in. */
export interface ClusterAccess {
  readonly server: string
  /** PEM; null takes the authorities of Node. */
  readonly ca: string | null
  /** Name that the certificate is checked for; null is the host of `server`. */
  readonly serverName: string | null
  readonly verifies: boolean
  readonly credentials: Credentials
  readonly namespace: string
  /** How it was found, for people. */
  readonly source: string
  /** What finds it again, whatever the current context is then; the context is empty in a cluster. */
  readonly way: { readonly connect: 'kubeconfig' | 'in-cluster', readonly context: string }
}

/** What of the settings leads to a cluster. */
export type ClusterWay = Pick<ClusterSettings, 'connect' | 'kubeconfig' | 'context' | 'namespace'>

/** Longer than any kubeconfig. */
const LONGEST_FILE = 4 * 1024 * 1024
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

const text = z.string().nullish().transform(value => value ?? '')
type Named<T> = z.ZodType<ReadonlyArray<{ name: string } & Record<string, T>>>
const named = <T extends z.ZodType> (key: string, schema: T): Named<z.output<T>> =>
  z.array(z.looseObject({ name: z.string(), [key]: schema })).nullish().transform(rows => rows ?? []) as never

const clusterSchema = z.looseObject({
  'server': z.string(),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'tls-server-name': text,
  'insecure-skip-tls-verify': z.boolean().nullish(),
  'proxy-url': text
})
const execSchema = z.looseObject({
  apiVersion: z.string().regex(/^client\.authentication\.k8s\.io\/v1(?:beta1)?$/, { error: 'must be client.authentication.k8s.io/v1 or v1beta1' }),
  command: z.string().min(1),
  args: z.array(z.string()).nullish(),
  env: z.array(z.looseObject({ name: z.string(), value: z.string() })).nullish(),
  installHint: text,
  provideClusterInfo: z.boolean().nullish(),
  interactiveMode: text
})
const userSchema = z.looseObject({
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  'token': text,
  'tokenFile': text,
  'username': text,
  'password': text,
  'exec': execSchema.nullish(),
  'auth-provider': z.unknown().optional()
})
const contextSchema = z.looseObject({ cluster: z.string(), user: text, namespace: text })
const fileSchema = z.looseObject({
  'current-context': text,
  'clusters': named('cluster', clusterSchema),
  'users': named('user', userSchema),
  'contexts': named('context', contextSchema)
})

/**
 * What the settings lead to. Reads files, asks nothing of the cluster. Throws `kubernetes.config`.
 * @param root of the file system, for a service account
 */
export async function clusterAccess (settings: ClusterWay, env: NodeJS.ProcessEnv, root = '/'): Promise<ClusterAccess> {
  const isInside = (env.KUBERNETES_SERVICE_HOST ?? '') !== ''
  const namesFile = settings.kubeconfig !== '' || settings.context !== ''
  const inside = settings.connect === 'in-cluster' || (settings.connect === 'auto' && isInside && !namesFile)
  return inside ? await serviceAccount(settings, env, root) : await fromFiles(settings, env)
}

/** What makes the way to a cluster one that others may listen at. Pure. */
export function accessDoubts ({ server, verifies }: Pick<ClusterAccess, 'server' | 'verifies'>): readonly string[] {
  if (!server.startsWith('https:')) return [`${server} is not encrypted: the credentials can be intercepted`]
  return verifies ? [] : [`the certificate of ${server} is not checked (insecure-skip-tls-verify in the kubeconfig): the credentials can be intercepted`]
}

async function serviceAccount ({ namespace }: ClusterWay, env: NodeJS.ProcessEnv, root: string): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' } = env
  if (host === '') throw kubernetesError('kubernetes.config', 'connect is in-cluster but this is not a pod: there is no KUBERNETES_SERVICE_HOST; set connect = "kubeconfig"')
  const folder = join(root, SERVICE_ACCOUNT)
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: await readText(join(folder, 'ca.crt')),
    serverName: null,
    verifies: true,
    credentials: { kind: 'token-file', path: join(folder, 'token') },
    namespace: namespace !== '' ? namespace : (await readText(join(folder, 'namespace'))).trim(),
    source: 'the service account of this pod',
    way: { connect: 'in-cluster', context: '' }
  }
}

async function fromFiles (settings: ClusterWay, env: NodeJS.ProcessEnv): Promise<ClusterAccess> {
  const listed = settings.kubeconfig !== '' ? settings.kubeconfig : env.KUBECONFIG ?? ''
  const paths = listed === '' ? [join(env.HOME ?? homedir(), '.kube/config')] : listed.split(delimiter).filter(each => each !== '')
  const files: Array<{ readonly path: string } & z.output<typeof fileSchema>> = []
  const absent: string[] = []
  for (const path of paths) {
    const file = await readConfig(path)
    if (file === null) absent.push(path)
    else files.push({ path, ...file })
  }
  if (files.length === 0) throw kubernetesError('kubernetes.config', `there is no kubeconfig at ${absent.join(' or ')}; set kubeconfig in [runtime.kubernetes]`)
  // as kubectl does: the first file that says something wins
  const wanted = settings.context !== '' ? settings.context : files.map(file => file['current-context']).find(each => each !== '') ?? ''
  if (wanted === '') throw kubernetesError('kubernetes.config', `${paths.join(', ')} has no current-context; set context in [runtime.kubernetes]`)
  const find = <K extends 'contexts' | 'clusters' | 'users'> (kind: K, name: string): { path: string, row: (typeof files)[number][K][number] } | null => {
    for (const file of files) {
      const row = file[kind].find(each => each.name === name)
      if (row !== undefined) return { path: file.path, row }
    }
    return null
  }
  const context = contextSchema.safeParse(find('contexts', wanted)?.row.context).data
  if (context === undefined) {
    const known = files.flatMap(file => file.contexts.map(row => row.name)).slice(0, 20).join(', ')
    throw kubernetesError('kubernetes.config', `there is no context '${wanted}' in ${paths.join(', ')}; there are: ${known === '' ? 'none' : known}`)
  }
  const cluster = find('clusters', context.cluster)
  if (cluster === null) throw kubernetesError('kubernetes.config', `context '${wanted}' names cluster '${context.cluster}', which ${paths.join(', ')} does not have`)
  const found = cluster.row.cluster as z.output<typeof clusterSchema>
  if (!/^https?:\/\//.test(found.server)) throw kubernetesError('kubernetes.config', `the server of cluster '${context.cluster}' must be an http(s) address`)
  if (found['proxy-url'] !== '') throw kubernetesError('kubernetes.config', `cluster '${context.cluster}' has a proxy-url, which is not supported`)
  const user = find('users', context.user)
  return {
    server: found.server.replace(/\/+$/, ''),
    ca: await pem(found['certificate-authority-data'], found['certificate-authority'], cluster.path),
    serverName: found['tls-server-name'] === '' ? null : found['tls-server-name'],
    verifies: found['insecure-skip-tls-verify'] !== true,
    credentials: user === null ? { kind: 'none' } : await credentialsOf(user.row.user as z.output<typeof userSchema>, user.path, context.user, found),
    namespace: settings.namespace !== '' ? settings.namespace : context.namespace !== '' ? context.namespace : 'default',
    source: `context '${wanted}' of ${paths.join(delimiter)}`,
    way: { connect: 'kubeconfig', context: wanted }
  }
}

async function credentialsOf (
  user: z.output<typeof userSchema>, file: string, name: string, cluster: z.output<typeof clusterSchema>
): Promise<Credentials> {
  if (user['auth-provider'] != null) {
    throw kubernetesError('kubernetes.config', `user '${name}' of ${file} has an auth-provider, which Kubernetes no longer supports; use its exec command`)
  }
  const cert = await pem(user['client-certificate-data'], user['client-certificate'], file)
  const key = await pem(user['client-key-data'], user['client-key'], file)
  if (cert !== null && key !== null) return { kind: 'certificate', cert, key }
  if (user.tokenFile !== '') return { kind: 'token-file', path: beside(file, user.tokenFile) }
  if (user.token !== '') return { kind: 'token', token: user.token }
  if (user.exec != null) {
    const { command, args, env, apiVersion, installHint, interactiveMode, provideClusterInfo } = user.exec
    if (interactiveMode === 'Always') throw kubernetesError('kubernetes.config', `the credential command of user '${name}' of ${file} needs a terminal (interactiveMode), which a gateway does not have`)
    const exec: ExecCommand = {
      // a command with a slash is beside the file, as kubectl has it
      command: command.includes('/') ? beside(file, command) : command,
      args: args ?? [],
      env: Object.fromEntries((env ?? []).map(each => [each.name, each.value])),
      apiVersion,
      installHint,
      cluster: provideClusterInfo === true ? Object.fromEntries(Object.entries(cluster).filter(([, value]) => value != null && value !== '')) : null
    }
    return { kind: 'exec', exec }
  }
  if (user.username !== '') return { kind: 'basic', username: user.username, password: user.password }
  return { kind: 'none' }
}

async function readConfig (path: string): Promise<z.output<typeof fileSchema> | null> {
  let source: string
  try {
    source = await readText(path)
  } catch (error) {
    if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return null
    throw error
  }
  const { parse } = await import('yaml')
  let value: unknown
  try {
    value = parse(source, { maxAliasCount: 100 })
  } catch (error) {
    throw kubernetesError('kubernetes.config', `${path} is not YAML: ${messageOf(error).split('\n')[0]}`)
  }
  const checked = fileSchema.safeParse(value ?? {})
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  throw kubernetesError('kubernetes.config', `${path} is not a kubeconfig: ${issue!.path.join('.')}: ${issue!.message}`)
}

async function pem (data: string, path: string, file: string): Promise<string | null> {
  if (data !== '') return Buffer.from(data, 'base64').toString('utf8')
  return path === '' ? null : await readText(beside(file, path))
}

function beside (file: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(file), path)
}

async function readText (path: string): Promise<string> {
  try {
    const bytes = await readFile(path)
    if (bytes.length > LONGEST_FILE) throw new Error('it is too long')
    return bytes.toString('utf8')
  } catch (error) {
    throw kubernetesError('kubernetes.config', `${path} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}
