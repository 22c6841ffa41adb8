/** Carries the engine's id, so that a process is recognised as ours even when its pid was never written down. */
export const ENGINE_ID_VARIABLE = 'SVC_ENGINE_ID'

/**
 * What an engine inherits of the gateway's own environment. Everything else, secrets above all, stays behind;
 * `[server] env` adds what a slot needs beyond it. Listed in README.md.
 */
export const inheritedVariables = [
  'PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'XDG_CACHE_HOME', 'XDG_RUNTIME_DIR',
  'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'DYLD_FALLBACK_LIBRARY_PATH', 'SSL_CERT_FILE', 'SSL_CERT_DIR',
  'ROCM_PATH', 'HIP_PATH', 'HSA_OVERRIDE_GFX_VERSION', 'CUDA_HOME', 'CUDA_PATH', 'VK_ICD_FILENAMES', 'VK_DRIVER_FILES'
] as const

/** The allow-list and `LC_*` of the gateway's environment, the engine's own on top, and the token that marks it. */
export function childEnvironment (
  gateway: Readonly<Record<string, string | undefined>>, own: Readonly<Record<string, string>>, engineId: string
): Record<string, string> {
  const inherited: Record<string, string> = {}
  for (const [name, value] of Object.entries(gateway)) {
    if (value !== undefined && isInherited(name)) inherited[name] = value
  }
  return { ...inherited, ...own, [ENGINE_ID_VARIABLE]: engineId }
}

function isInherited (name: string): boolean {
  return name.startsWith('LC_') || (inheritedVariables as readonly string[]).includes(name)
}
