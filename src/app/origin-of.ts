/** Origin of a URL, remembered: it is asked for with every POST. */
export function createOriginOf(): (url: string) => string {
  const known = new Map<string, string>()
  return (url) => {
    let origin = known.get(url)
    if (origin === undefined) {
      if (known.size > 50_000) known.clear()
      origin = URL.canParse(url) ? new URL(url).origin : 'invalid'
      known.set(url, origin)
    }
    return origin
  }
}
