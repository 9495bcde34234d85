// SPDX-License-Identifier: Apache-2.0

package kinds

// +kubebuilder:rbac:groups=kubeflow.org,resources=xgboostjobs,verbs=get;list;watch;create;delete

// xgBoostJob is the training operator's XGBoostJob.
var xgBoostJob = kubeflowJob("v1", "XGBoostJob", "xgbReplicaSpecs", "xgboost", "Master", "Worker")
