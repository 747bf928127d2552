"""STUB until the measured one arrives."""
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Ranking:
    lexical: float = 0.3
def fuse(channels, vector, ranking):
    hits={}
    total={}
    for name, w in (("dense",0.7),("lexical",0.3)):
        found=channels[name]
        if not found: continue
        s=[h.scores[name] for h in found]; lo,hi=min(s),max(s)
        for h in found:
            hits.setdefault(h.passage.id,h)
            total[h.passage.id]=total.get(h.passage.id,0)+w*((h.scores[name]-lo)/((hi-lo) or 1))
    return [replace(hits[i],scores={"fused":t}) for i,t in sorted(total.items(), key=lambda p:(-p[1],p[0]))]
def capped(hits, most):
    if not most: return list(hits)
    n={}; out=[]
    for h in hits:
        n[h.passage.doc_id]=n.get(h.passage.doc_id,0)+1
        if n[h.passage.doc_id]<=most: out.append(h)
    return out
def diverse(hits, vector, k, amount): return list(hits)
