"""The algorithms, one per file, and the table from a method's name to its module.

To add an algorithm, add a file and a line here. Only the plan reads this table; a training imports the module that its
order names, so a new line retrains nothing.
"""

ALGORITHMS: dict[str, str] = {
    "AdaSingle": "pipeline.federated.algorithms.single",
    "AdaCentralized": "pipeline.federated.algorithms.centralized",
    "AdaFedAvg": "pipeline.federated.algorithms.fedavg",
    "AdaFedOPT": "pipeline.federated.algorithms.fedopt",
    "AdaFedProx": "pipeline.federated.algorithms.fedprox",
    "AdaFedNova": "pipeline.federated.algorithms.fednova",
    "AdaFedAvgM": "pipeline.federated.algorithms.fedavgm",
    "SCAFFOLD": "pipeline.federated.algorithms.scaffold",
    "Ditto": "pipeline.federated.algorithms.ditto",
    "AdaFedKD": "pipeline.federated.algorithms.fedkd",
    "AdaFedHardKD": "pipeline.federated.algorithms.fedhardkd",
    "AdaFedSelectKD": "pipeline.federated.algorithms.fedselectkd",
    "Median": "pipeline.federated.algorithms.median",
    "TrimmedMean": "pipeline.federated.algorithms.trimmedmean",
    "NormClipping": "pipeline.federated.algorithms.normclipping",
    "Krum": "pipeline.federated.algorithms.krum",
    "FedBuff": "pipeline.federated.algorithms.fedbuff",
    "FedSum": "pipeline.federated.algorithms.fedsum",
    "FedProto": "pipeline.federated.algorithms.fedproto",
    "FedDC": "pipeline.federated.algorithms.feddc",
}
