import { generate } from 'selfsigned'

export interface Authority {
  readonly ca: string
  /** A certificate for 127.0.0.1 and for clients, signed by this authority. */
  issue(commonName: string): Promise<{ readonly certificate: string; readonly key: string }>
}

const common = { keyType: 'ec', algorithm: 'sha256' } as const

/** A certificate authority that lives as long as the test. */
export async function createAuthority(name: string): Promise<Authority> {
  const root = await generate([{ name: 'commonName', value: name }], {
    ...common,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  })
  return {
    ca: root.cert,
    async issue(commonName) {
      const leaf = await generate([{ name: 'commonName', value: commonName }], {
        ...common,
        ca: { key: root.private, cert: root.cert },
        extensions: [
          { name: 'basicConstraints', cA: false, critical: true },
          { name: 'keyUsage', digitalSignature: true, critical: true },
          { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
          { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
        ],
      })
      return { certificate: leaf.cert, key: leaf.private }
    },
  }
}
