import { hfError } from './errors.js'

const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/
const REVISION = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$/

/** `owner/name`, or one of the old names without an owner. Throws `hf.bad_request`. */
export function requireRepoId (id: string): string {
  const parts = id.split('/')
  const fits = parts.length <= 2 && parts.every(part => SEGMENT.test(part) && !part.includes('..'))
  if (!fits) throw hfError('hf.bad_request', 'a repository of the hub is named owner/name, such as Qwen/Qwen3-4B-GGUF', { param: 'hf_repo' })
  return id
}

/**
 * The repository that an address leads to: a page of it, of one of its files, or `hf://owner/name`. Null for an address of
 * another site. Pure.
 */
export function repoOfUrl (url: string, endpoint: string): { readonly repo: string, readonly path: string | null } | null {
  if (!URL.canParse(url)) return null
  const { protocol, host, hostname, pathname } = new URL(url)
  const known = [new URL(endpoint).host, 'huggingface.co', 'hf.co', 'www.huggingface.co']
  const path = protocol === 'hf:' ? `/${hostname}${pathname}` : known.includes(host) ? pathname : null
  if (path === null) return null
  const [owner = '', name = '', kind = '', , ...file] = path.split('/').filter(part => part !== '').map(decoded)
  if (owner === '' || name === '' || owner === 'datasets' || owner === 'spaces') return null
  const isFile = ['blob', 'resolve', 'raw'].includes(kind) && file.length > 0
  return { repo: `${owner}/${name}`, path: isFile ? file.join('/') : null }
}

export function requireRevision (revision: string): string {
  if (!REVISION.test(revision) || revision.includes('..')) throw hfError('hf.bad_request', 'a revision is a branch, tag or commit', { param: 'revision' })
  return revision
}

/** A path for a URL: each segment escaped, slashes kept. Pure. */
export function escapedPath (path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}

function decoded (part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
