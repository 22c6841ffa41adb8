/** Which folder an engine with models of its own keeps them in. Absent: one of the provider's name in the model store. */
export interface EngineStore {
  /** Below the model store. */
  readonly folder: string
  /** Variable of the gateway's environment that names another as an absolute path. It wins over `setting`. */
  readonly variable?: string
  /** Key of `[models]` in svc.toml that names another; the `settings` of its plugin bring it. Empty text is none. */
  readonly setting?: string
}

/** A provider, as far as its store is concerned. */
export interface StoreOwner {
  readonly name: string
  readonly models?: { readonly store?: EngineStore }
}
